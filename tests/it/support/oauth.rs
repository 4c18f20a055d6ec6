//! The authorization server from a client's side: registration, codes, tokens, and a
//! server of client metadata documents over TLS.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::browser::{Ask, Browser, Page, VERIFIER};
use super::sign_in::is_out;
use super::{Gateway, Value, json};

/// Posts a form to an endpoint.
pub(crate) async fn post(gateway: &Gateway, path: &str, fields: &[(&str, &str)]) -> Page {
    post_with(gateway, path, fields, &[]).await
}

/// The same with headers.
pub(crate) async fn post_with(
    gateway: &Gateway,
    path: &str,
    fields: &[(&str, &str)],
    headers: &[(&str, &str)],
) -> Page {
    let url = format!("{}{path}", gateway.url());
    Browser::new().post_with(&url, fields, headers).await
}

/// The body as JSON.
pub(crate) fn body(page: &Page) -> Value {
    serde_json::from_str(&page.body).unwrap_or_else(|_| panic!("no JSON: {page:?}"))
}

/// Status and `error`.
pub(crate) fn refusal(page: &Page) -> (u16, String) {
    let error = serde_json::from_str::<Value>(&page.body).unwrap_or_default();
    let error = error["error"].as_str().unwrap_or_default().to_owned();
    (page.status.as_u16(), error)
}

/// Registers a client.
pub(crate) async fn register(gateway: &Gateway, metadata: &Value) -> Page {
    let answer = gateway
        .http()
        .post(format!("{}/oauth/register", gateway.url()))
        .header("content-type", "application/json")
        .body(metadata.to_string())
        .send()
        .await
        .unwrap();
    Page {
        url: answer.url().clone(),
        status: answer.status(),
        headers: answer.headers().clone(),
        body: answer.text().await.unwrap(),
    }
}

/// Goes through the pages as a person and gives the code.
pub(crate) async fn code(ask: &Ask, user: &str) -> String {
    let browser = Browser::new();
    let mut out = browser.connect(ask, user).await;
    if !is_out(&out) {
        // Scopes that change things, or several tenants: as the page offers it, in acme.
        let in_acme = [("tenant", "acme")];
        let tenant = out.body.contains("name=\"tenant\"");
        let chosen = if tenant { &in_acme[..] } else { &[] };
        out = browser.press(&out, "approve", chosen).await;
    }
    out.sent("code")
        .unwrap_or_else(|| panic!("no code: {out:?}"))
}

/// The fields that exchange a code.
pub(crate) fn exchange<'f>(client: &'f str, code: &'f str) -> Vec<(&'f str, &'f str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", client),
        ("code_verifier", VERIFIER),
    ]
}

/// Signs a person in to a client and gives the tokens.
pub(crate) async fn signed_in(gateway: &Gateway, ask: &Ask, client: &str, user: &str) -> Value {
    let code = code(ask, user).await;
    let page = post(gateway, "/oauth/token", &exchange(client, &code)).await;
    assert_eq!(page.status, 200, "{page:?}");
    body(&page)
}

/// Uses a refresh token, with further fields.
pub(crate) async fn refresh(
    gateway: &Gateway,
    client: &str,
    token: &str,
    more: &[(&str, &str)],
) -> Page {
    let mut fields = vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", client),
    ];
    fields.extend_from_slice(more);
    post(gateway, "/oauth/token", &fields).await
}

/// A text of tokens.
pub(crate) fn text<'t>(tokens: &'t Value, name: &str) -> &'t str {
    tokens[name]
        .as_str()
        .unwrap_or_else(|| panic!("no {name} in {tokens}"))
}

/// The status of a call with an access token at an endpoint.
pub(crate) async fn status_at(gateway: &Gateway, path: &str, token: &str) -> u16 {
    let caller = gateway.anonymous().bearer(token).sent_to(path);
    let answer = caller.modern().request("tools/list", json!({})).await;
    answer.status.as_u16()
}

/// What the tables of the authorization server hold, to compare before and after: in
/// short, and every byte of their rows. Rows of sign-ins and of spent answers are apart
/// (`sign_in::rows` counts the former): a refused answer of a provider counts as used.
pub(crate) fn state(gateway: &Gateway) -> String {
    let rows = |table: &str| {
        format!(
            "(SELECT left(md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')), 12) FROM {table} t)"
        )
    };
    let digests = ["clients", "grants", "families", "revocations", "assertions"]
        .map(|table| rows(&format!("oauth_{table}")))
        .join(" || ' ' || ");
    gateway
        .database()
        .psql(&format!(
            "SELECT (SELECT count(*) FROM oauth_clients) || ' clients, '
             || (SELECT count(*) FROM oauth_grants) || ' grants, '
             || (SELECT coalesce(string_agg(generation || ':' || (code_used_at IS NOT NULL), ','
                  ORDER BY family_id), '') FROM oauth_families) || ' families, '
             || (SELECT count(*) FROM oauth_revocations) || ' revocations; ' || {digests}"
        ))
        .trim()
        .to_owned()
}

/// What a path is answered with.
#[derive(Clone, Debug)]
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

/// A web server of clients' documents, with a certificate of its own authority.
#[derive(Debug)]
pub(crate) struct Documents {
    hosts: Vec<String>,
    address: SocketAddr,
    ca_file: std::path::PathBuf,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
    _folder: super::folder::Folder,
}

/// The host that it has by itself.
pub(crate) const HOST: &str = "app.example.invalid";

impl Documents {
    /// Starts it as [`HOST`].
    pub(crate) async fn start() -> Self {
        Self::for_hosts(&[HOST]).await
    }

    /// Starts it as all of these; each has all documents.
    pub(crate) async fn for_hosts(hosts: &[&str]) -> Self {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let cert = rcgen::generate_simple_self_signed(hosts.clone()).unwrap();
        let key = PrivatePkcs8KeyDer::from(cert.signing_key.serialize_der());
        let tls = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.cert.der().clone()], PrivateKeyDer::from(key))
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let folder = super::folder::Folder::new();
        let ca_file = folder.file("ca.pem", &cert.cert.pem());
        let answers: Arc<Mutex<HashMap<String, Answer>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let address = listener.local_addr().unwrap();
        let (known, seen) = (Arc::clone(&answers), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, known, seen) =
                    (acceptor.clone(), Arc::clone(&known), Arc::clone(&seen));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &known, &seen).await;
                    }
                });
            }
        });
        Self {
            hosts,
            address,
            ca_file,
            answers,
            asked,
            task,
            _folder: folder,
        }
    }

    /// The part of a configuration that leads here.
    pub(crate) fn config(&self) -> Value {
        let mut resolve = json!({});
        for host in &self.hosts {
            resolve[format!("{host}:443")] = json!(self.address.to_string());
        }
        json!({"outgoing": { "ca_file": self.ca_file, "resolve": resolve }})
    }

    /// Puts a document at a path, and gives its URL.
    pub(crate) fn put(&self, path: &str, body: &str) -> String {
        self.answer(path, 200, "content-type: application/json\r\n", body)
    }

    /// Puts any answer at a path.
    pub(crate) fn answer(&self, path: &str, status: u16, headers: &str, body: &str) -> String {
        let answer = Answer {
            status,
            headers: headers.to_owned(),
            body: body.to_owned(),
        };
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
        format!("https://{HOST}{path}")
    }

    /// The requests that came, with their headers.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Documents {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    answers: &Mutex<HashMap<String, Answer>>,
    asked: &Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(head);
    let found = answers.lock().unwrap().get(&path).cloned();
    let answer = found.unwrap_or(Answer {
        status: 404,
        headers: String::new(),
        body: String::new(),
    });
    let text = format!(
        "HTTP/1.1 {} X\r\ncontent-length: {}\r\nconnection: close\r\n{}\r\n{}",
        answer.status,
        answer.body.len(),
        answer.headers,
        answer.body
    );
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
