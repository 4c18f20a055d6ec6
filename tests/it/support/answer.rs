//! A whole answer: status, headers, body, and the messages in it, however they came.

use std::fmt::Write as _;

use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};

use super::sse::{Events, is_stream};
use super::{PATIENCE, Value};

/// An answer that has been read.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status line's code.
    pub(crate) status: StatusCode,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// The body; of a stream, its messages, a line each.
    pub(crate) body: String,
    /// The JSON messages, the final one last.
    pub(crate) messages: Vec<Value>,
    /// Whether it came as a stream of events.
    pub(crate) streamed: bool,
}

/// Headers that a snapshot shows.
const SHOWN: [&str; 12] = [
    "content-type",
    "allow",
    "www-authenticate",
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "mcp-session-id",
    "mcp-protocol-version",
    "cache-control",
    "x-accel-buffering",
    "location",
    "access-control-allow-origin",
];

impl Answer {
    /// Reads an answer to its end, or of a stream up to the response with this id.
    pub(crate) async fn read(response: Response, id: &Value) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let streamed = is_stream(&response) && status == StatusCode::OK;
        let (body, messages) = if streamed {
            let messages = Events::new(response).await.until_response(id).await;
            let lines: Vec<_> = messages.iter().map(Value::to_string).collect();
            (lines.join("\n"), messages)
        } else {
            let body = tokio::time::timeout(PATIENCE, response.text()).await;
            let body = body.expect("the answer ends").expect("the answer is whole");
            let messages = serde_json::from_str(&body).into_iter().collect();
            (body, messages)
        };
        Self {
            status,
            headers,
            body,
            messages,
            streamed,
        }
    }

    /// The final message.
    pub(crate) fn message(&self) -> &Value {
        self.messages
            .last()
            .unwrap_or_else(|| panic!("no message: {self:?}"))
    }

    /// Its `result`. Panics where there is none.
    pub(crate) fn result(&self) -> &Value {
        let result = self.message().get("result");
        result.unwrap_or_else(|| panic!("no result: {self:?}"))
    }

    /// Its `error`. Panics where there is none.
    pub(crate) fn error(&self) -> &Value {
        let error = self.message().get("error");
        error.unwrap_or_else(|| panic!("no error: {self:?}"))
    }

    /// The code of its error.
    pub(crate) fn code(&self) -> i64 {
        self.error()["code"].as_i64().unwrap()
    }

    /// Whether it is the result of a tool that failed.
    pub(crate) fn is_error(&self) -> bool {
        self.result()["isError"] == true
    }

    /// The text of a tool's result: its text blocks joined.
    pub(crate) fn text(&self) -> String {
        let blocks = self.result()["content"].as_array().unwrap();
        blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect()
    }

    /// One header, if it is there once.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?.to_str().unwrap();
        assert!(
            values.next().is_none(),
            "{name} comes more than once: {self:?}"
        );
        Some(first)
    }

    /// Status, the headers that matter and the body as one text for a snapshot,
    /// with what differs from run to run replaced.
    pub(crate) fn snapshot(&self) -> String {
        let mut text = format!("{}\n", self.status);
        for name in SHOWN {
            for value in self.headers.get_all(name) {
                let value = if name == "mcp-session-id" {
                    "[session]"
                } else {
                    value.to_str().unwrap()
                };
                writeln!(text, "{name}: {value}").unwrap();
            }
        }
        for message in &self.messages {
            write!(
                text,
                "\n{}\n",
                serde_json::to_string_pretty(message).unwrap()
            )
            .unwrap();
        }
        if self.messages.is_empty() && !self.body.is_empty() {
            write!(text, "\n{}\n", self.body).unwrap();
        }
        redact(&text)
    }
}

/// Replaces what differs from run to run: ports on loopback and ids.
pub(crate) fn redact(text: &str) -> String {
    let port = regex::Regex::new(r"127\.0\.0\.1:\d+").unwrap();
    let uuid = regex::Regex::new(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let text = port.replace_all(text, "127.0.0.1:PORT");
    uuid.replace_all(&text, "[uuid]").into_owned()
}
