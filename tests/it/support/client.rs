//! Callers: who they are, and the plainest way to send something.

use std::io::{Read, Write};
use std::net::TcpStream;

use reqwest::{Method, Response};

use super::answer::Answer;
use super::keys::Token;
use super::server::http_client;
use super::session::{Era, LEGACY, Session};
use super::{Gateway, Helper, PATIENCE, Value};

/// Somebody who sends requests to one endpoint, with or without a token.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    http: reqwest::Client,
    url: String,
    path: String,
    public: String,
    token: Option<Token>,
    bearer: Option<String>,
    extra: Vec<(String, String)>,
}

impl Caller {
    /// A caller of `/mcp`.
    pub(crate) fn new(gateway: &Gateway, token: Option<Token>) -> Self {
        let mut caller = Self {
            http: gateway.http().clone(),
            url: gateway.url().to_owned(),
            path: "/mcp".to_owned(),
            public: gateway.audience(""),
            token,
            bearer: None,
            extra: Vec::new(),
        };
        caller.sign();
        caller
    }

    /// A caller of any MCP server at `/mcp`, without a token.
    pub(crate) fn of(server: &Helper) -> Self {
        let url = server.url().trim_end_matches("/mcp").to_owned();
        Self {
            http: http_client(),
            public: url.clone(),
            url,
            path: "/mcp".to_owned(),
            token: None,
            bearer: None,
            extra: Vec::new(),
        }
    }

    fn sign(&mut self) {
        self.bearer = self.token.as_ref().map(Token::sign);
    }

    /// The same person at another endpoint, with a token meant for it.
    pub(crate) fn at(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        let audience = format!("{}{path}", self.public);
        self.token = self.token.map(|token| token.audience(audience));
        self.sign();
        self
    }

    /// The same token sent to another path.
    pub(crate) fn sent_to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The same person through another replica.
    pub(crate) fn through(mut self, replica: &Gateway) -> Self {
        replica.url().clone_into(&mut self.url);
        self
    }

    /// The same person at another address of the deployment.
    pub(crate) fn to(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// With another token, made from this one.
    pub(crate) fn with(mut self, change: impl FnOnce(Token) -> Token) -> Self {
        self.token = self.token.map(change);
        self.sign();
        self
    }

    /// With this text as the token.
    pub(crate) fn bearer(mut self, text: &str) -> Self {
        self.token = None;
        self.bearer = Some(text.to_owned());
        self
    }

    /// With one more header on every request; of the same name the later counts.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.extra.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The token as it is sent.
    pub(crate) fn token(&self) -> &str {
        self.bearer.as_deref().expect("this caller has a token")
    }

    /// The endpoint's URL.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}{}", self.url, self.path)
    }

    /// Opens a session, or whatever stands for one in that era.
    pub(crate) async fn connect(&self, era: Era) -> Session {
        match era {
            Era::Legacy => self.legacy(LEGACY).await,
            Era::Modern => self.modern(),
        }
    }

    /// Opens a legacy session of this revision.
    pub(crate) async fn legacy(&self, version: &str) -> Session {
        Session::initialize(self.clone(), version).await
    }

    /// Opens a session of a client that can do this, or what stands for one.
    pub(crate) async fn able(&self, era: Era, capabilities: Value) -> Session {
        match era {
            Era::Legacy => Session::initialize_able(self.clone(), LEGACY, capabilities).await,
            Era::Modern => self.modern().able(capabilities),
        }
    }

    /// Speaks the modern revision. Nothing is sent yet.
    pub(crate) fn modern(&self) -> Session {
        Session::modern(self.clone())
    }

    /// Sends exactly this, with the token and no other header of our own.
    pub(crate) async fn raw(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        Answer::read(self.open(method, headers, body).await, &Value::Null).await
    }

    /// Like `raw`, without reading the body.
    pub(crate) async fn open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Response {
        let answer = self.try_open(method, headers, body).await;
        answer.expect("the connection holds")
    }

    /// Like `open`; `None` where the connection breaks.
    pub(crate) async fn try_open(
        &self,
        method: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Option<Response> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self
            .http
            .request(method, self.endpoint())
            .body(body)
            .build()
            .unwrap();
        let mut set = |name: &str, value: &str| {
            let name: reqwest::header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        };
        if let Some(bearer) = &self.bearer {
            set("authorization", &format!("Bearer {bearer}"));
        }
        for (name, value) in headers {
            set(name, value);
        }
        for (name, value) in &self.extra {
            set(name, value);
        }
        let answer = tokio::time::timeout(PATIENCE, self.http.execute(request)).await;
        answer.expect("an answer begins").ok()
    }

    /// Sends bytes as they are over a connection of its own and reads until the
    /// server closes it or is quiet for a second. Blocks.
    pub(crate) fn wire(&self, bytes: &[u8]) -> String {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(1)))
            .unwrap();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }
}
