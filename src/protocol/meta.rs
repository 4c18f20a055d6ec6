//! The `_meta` of a request (MCP 2026-07-28 basic, General fields).

use super::event::LogLevel;
use super::json::{Json, Kind};

/// `_meta` key: the request's protocol version.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key: the client's name and version, unverified.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key: the client's capabilities.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key: the least severe log message that the client wants for this request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// `_meta` key: the server's name and version.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key: which listen request a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// `_meta` key: opts into progress notifications.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The params with this place in a trace in their `_meta` (SEP-414), and no other.
pub fn with_trace(params: &Json, parent: &str, state: Option<&str>) -> Json {
    let own = params.get("_meta").unwrap_or_else(Json::empty_object);
    let own = own.without_members(|name| matches!(name, "tracestate" | "baggage"));
    let own = own.with_member("traceparent", &Json::from_text(parent));
    let own = match state {
        Some(state) => own.with_member("tracestate", &Json::from_text(state)),
        None => own,
    };
    params.with_member("_meta", &own)
}

/// The reserved members of a request's `_meta`, and the others as they came.
#[derive(Clone, Debug, Default)]
pub struct RequestMeta {
    /// `io.modelcontextprotocol/protocolVersion`; its presence makes a request modern.
    pub protocol_version: Option<String>,
    /// `io.modelcontextprotocol/clientInfo`.
    pub client_info: Option<Json>,
    /// `io.modelcontextprotocol/clientCapabilities`.
    pub client_capabilities: Option<Json>,
    /// `io.modelcontextprotocol/logLevel` where it is a known level.
    pub log_level: Option<LogLevel>,
    /// Whether `io.modelcontextprotocol/logLevel` was there but is no level.
    pub bad_log_level: bool,
    /// `progressToken`, a string or an integer.
    pub progress_token: Option<Json>,
    /// `traceparent` (W3C Trace Context), unverified.
    pub traceparent: Option<String>,
    /// `tracestate` (W3C Trace Context), unverified.
    pub tracestate: Option<String>,
    /// Every other member, in order; passes on to the upstream. `baggage` does not.
    pub others: Vec<(String, Json)>,
}

impl RequestMeta {
    /// Reads `params._meta`; anything that is no object reads as empty.
    pub fn of(params: Option<&Json>) -> Self {
        let mut meta = Self::default();
        let Some(object) = params.and_then(|params| params.get("_meta")) else {
            return meta;
        };
        for (key, value) in object.members() {
            match &*key {
                PROTOCOL_VERSION => {
                    meta.protocol_version =
                        Some(value.string().map_or_else(String::new, Into::into));
                }
                CLIENT_INFO => meta.client_info = Some(value),
                CLIENT_CAPABILITIES => meta.client_capabilities = Some(value),
                LOG_LEVEL => {
                    meta.log_level = value.string().and_then(|name| LogLevel::parse(&name));
                    meta.bad_log_level = meta.log_level.is_none();
                }
                PROGRESS_TOKEN => {
                    meta.progress_token =
                        matches!(value.kind(), Kind::String | Kind::Number).then_some(value);
                }
                "traceparent" => meta.traceparent = value.string().map(Into::into),
                "tracestate" => meta.tracestate = value.string().map(Into::into),
                "baggage" | SERVER_INFO | SUBSCRIPTION_ID => {}
                _ => meta.others.push((key.into_owned(), value)),
            }
        }
        meta
    }
}
