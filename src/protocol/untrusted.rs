//! What an upstream said, before it is cleaned.

use std::fmt;
use std::time::Duration;

use super::ask::ServerMethod;
use super::capabilities::ClientCapabilities;
use super::json::Json;

/// A value from an upstream. Only `sanitize` opens it (a test holds that); the
/// rest of the program sees control fields alone.
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks a value as an upstream's.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// The value itself. Only `sanitize` may call this.
    pub(crate) fn open(self) -> T {
        self.0
    }
}

impl Untrusted<Json> {
    /// The result's `resultType` where it is one that the core protocol has;
    /// absent means complete (MCP 2026-07-28 basic, `ResultType`).
    pub fn is_input_required(&self) -> bool {
        self.0
            .get("resultType")
            .as_ref()
            .and_then(Json::string)
            .as_deref()
            == Some("input_required")
    }

    /// Whether the result says that the tool failed.
    pub fn is_error(&self) -> bool {
        self.0.get("isError").and_then(|flag| flag.boolean()) == Some(true)
    }

    /// Bytes of the value's text.
    pub fn len(&self) -> usize {
        self.0.as_str().len()
    }

    /// Never: a JSON text has at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// One page of a list, taken apart.
#[derive(Debug)]
pub struct ListPage {
    /// The members of the list.
    pub items: Vec<Untrusted<Json>>,
    /// Where the next page begins; goes back to the upstream as it came.
    pub next_cursor: Option<String>,
    /// `ttlMs` (MCP 2026-07-28 caching).
    pub fresh_for: Option<Duration>,
}

impl Untrusted<Json> {
    /// Takes a list's result apart; `None` where it has no list of that name.
    pub fn into_page(self, list: &str) -> Option<ListPage> {
        let items = self
            .0
            .get(list)
            .filter(|items| items.as_str().starts_with('['))?;
        let cursor = self.0.get("nextCursor");
        let millis = self.0.get("ttlMs").and_then(|millis| millis.integer());
        Some(ListPage {
            items: items.elements().map(Untrusted).collect(),
            next_cursor: cursor.and_then(|cursor| cursor.string().map(Into::into)),
            fresh_for: millis
                .and_then(|millis| u64::try_from(millis).ok())
                .map(Duration::from_millis),
        })
    }
}

/// A result that asks for input, taken apart (MCP 2026-07-28 multi round-trip
/// requests, `InputRequiredResult`).
#[derive(Debug)]
pub struct InputRequired {
    /// What is asked for, in order.
    pub requests: Vec<InputRequest>,
    /// `requestState`: goes back to the upstream as it came.
    pub state: Option<String>,
    /// The other members of the result.
    pub rest: Untrusted<Json>,
}

/// One member of `inputRequests`.
#[derive(Debug)]
pub struct InputRequest {
    /// The upstream's key for it.
    pub key: String,
    /// What is asked.
    pub method: ServerMethod,
    /// Its parameters.
    pub params: Untrusted<Json>,
    /// The capabilities that a client needs for it and that these lack.
    pub lacking: Option<Json>,
}

impl Untrusted<Json> {
    /// Takes a result that asks for input apart; `None` where it is not of that
    /// form. `client`: whose capabilities the requests are held against.
    pub fn into_input_required(self, client: &ClientCapabilities) -> Option<InputRequired> {
        let state = match self.0.get("requestState") {
            Some(state) => Some(state.string()?.into_owned()),
            None => None,
        };
        let mut requests = Vec::new();
        let given = self.0.get("inputRequests");
        for (key, request) in given.iter().flat_map(Json::members) {
            let method = ServerMethod::parse(&request.get("method")?.string()?)?;
            let params = request.get("params").unwrap_or_else(Json::empty_object);
            requests.push(InputRequest {
                key: key.into_owned(),
                method,
                lacking: client.lacking(method, &params),
                params: Untrusted(params),
            });
        }
        let formed = given.as_ref().is_none_or(Json::is_object);
        let rest = |name: &str| matches!(name, "inputRequests" | "requestState");
        (formed && (state.is_some() || !requests.is_empty())).then(|| InputRequired {
            requests,
            state,
            rest: Untrusted(self.0.without_members(rest)),
        })
    }
}

impl<T> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Untrusted(..)")
    }
}
