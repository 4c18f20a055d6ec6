//! Asking a server: no redirect is followed, nothing is kept, answers are short.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value};

use crate::config;
use crate::outgoing::{Challenge, HttpAnswer, HttpClient, Outgoing, OutgoingFault, Reach};

/// Longest answer that is read.
const LIMIT: usize = 1 << 20;

/// Asks.
pub(super) struct Web {
    client: HttpClient,
    timeout: Duration,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) challenges: Vec<Challenge>,
    pub(super) text: String,
}

/// A header to send.
pub(super) type Header<'a> = (&'static str, &'a str);

impl Web {
    /// As a client on some machine would.
    pub(super) fn new(ca_file: Option<PathBuf>, timeout: Duration) -> anyhow::Result<Self> {
        let settings = config::Outgoing {
            ca_file,
            ..config::Outgoing::default()
        };
        Self::over(&settings, Reach::Private, timeout)
    }

    /// As the service would, by its own settings.
    pub(super) fn over(
        settings: &config::Outgoing,
        reach: Reach,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let outgoing = Outgoing::new(settings)?;
        Ok(Self {
            client: outgoing.client(reach, timeout),
            timeout,
        })
    }

    pub(super) async fn get(&self, url: &str, headers: &[Header<'_>]) -> Result<Page, String> {
        let asked = self.client.get(url, headers.iter().copied());
        self.read(asked).await
    }

    pub(super) async fn post(
        &self,
        url: &str,
        headers: &[Header<'_>],
        body: String,
    ) -> Result<Page, String> {
        let asked = self
            .client
            .post(url, headers.iter().copied(), Bytes::from(body));
        self.read(asked).await
    }

    /// A form, as OAuth endpoints take it.
    pub(super) async fn form(
        &self,
        url: &str,
        headers: &[Header<'_>],
        fields: &[(&str, &str)],
    ) -> Result<Page, String> {
        let mut all = vec![
            ("content-type", "application/x-www-form-urlencoded"),
            ("accept", "application/json"),
        ];
        all.extend_from_slice(headers);
        self.post(url, &all, form(fields)).await
    }

    async fn read(
        &self,
        asked: impl Future<Output = Result<HttpAnswer, OutgoingFault>>,
    ) -> Result<Page, String> {
        let reading = async {
            let mut answer = asked.await?;
            let (status, headers) = (answer.status, answer.headers().clone());
            let challenges = answer.challenges().unwrap_or_default();
            let streamed = answer.media_type().as_deref() == Some("text/event-stream");
            let body = if streamed {
                // A stream has no end to wait for: its first piece tells enough.
                answer.chunk().await?.unwrap_or_default()
            } else {
                answer.body(LIMIT).await?
            };
            Ok::<_, OutgoingFault>(Page {
                status,
                headers,
                challenges,
                text: String::from_utf8_lossy(&body).into_owned(),
            })
        };
        match tokio::time::timeout(self.timeout, reading).await {
            Ok(Ok(page)) => Ok(page),
            Ok(Err(fault)) => Err(fault.to_string()),
            Err(_) => Err(format!("no answer within {} s", self.timeout.as_secs())),
        }
    }
}

impl Page {
    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as a JSON object.
    pub(super) fn object(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.text).ok()
    }

    /// The JSON-RPC message in a JSON or event-stream body.
    pub(super) fn message(&self) -> Option<Map<String, Value>> {
        if let Some(object) = self.object() {
            return Some(object);
        }
        let mut data = self
            .text
            .lines()
            .filter_map(|line| line.strip_prefix("data:"));
        data.find_map(|data| serde_json::from_str(data.trim_start()).ok())
    }

    /// How an OAuth endpoint says no (RFC 6749 §5.2): code and words.
    pub(super) fn refusal(&self) -> String {
        let object = self.object().unwrap_or_default();
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        match (text("error"), text("error_description")) {
            (Some(code), Some(words)) => format!("{} ({code}: {})", self.status, short(words)),
            (Some(code), None) => format!("{} ({code})", self.status),
            _ => format!("{} without an OAuth error in its body", self.status),
        }
    }
}

/// `application/x-www-form-urlencoded`.
pub(super) fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish()
}

/// The first 200 characters.
pub(super) fn short(text: &str) -> String {
    text.chars().take(200).collect()
}
