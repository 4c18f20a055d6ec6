//! The JSON-RPC 2.0 envelope: what a message is, told from its members alone.

use std::fmt;
use std::hash::{Hash, Hasher};

use thiserror::Error;

use super::json::{Json, Kind, ObjectBuilder};

/// A request id: a string or an integer, never `null` (MCP 2026-07-28 basic).
/// Kept as it was written, so that it is echoed byte for byte; compared by value.
#[derive(Clone)]
pub struct RequestId(Json);

impl RequestId {
    /// Takes a JSON value that is a string or an integer.
    pub fn new(json: Json) -> Option<Self> {
        let text = json.as_str();
        let integer = || {
            text.bytes()
                .enumerate()
                .all(|(at, b)| b.is_ascii_digit() || (at == 0 && b == b'-' && text.len() > 1))
        };
        match json.kind() {
            Kind::String => Some(Self(json)),
            Kind::Number if integer() => Some(Self(json)),
            _ => None,
        }
    }

    /// As it was written.
    pub fn json(&self) -> &Json {
        &self.0
    }

    /// A text that is equal for equal ids and tells numbers from strings.
    pub fn key(&self) -> String {
        self.0
            .string()
            .map_or_else(|| self.0.as_str().to_owned(), |text| format!("\"{text}"))
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self(Json::from_integer(number))
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// A request: has `id` and `method`.
#[derive(Clone, Debug)]
pub struct Request {
    /// The request's id.
    pub id: RequestId,
    /// The method's name.
    pub method: String,
    /// The parameters, where there are any.
    pub params: Option<Json>,
}

/// A notification: has `method` and no `id`.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The method's name.
    pub method: String,
    /// The parameters, where there are any.
    pub params: Option<Json>,
}

/// An answer to a request: `result` or `error`.
#[derive(Clone, Debug)]
pub struct Response {
    /// The id of the request it answers; absent where that could not be read.
    pub id: Option<RequestId>,
    /// The result, or the error object.
    pub outcome: Result<Json, Json>,
}

/// One JSON-RPC message, or a batch of them.
#[derive(Clone, Debug)]
pub enum Message {
    /// A request.
    Request(Request),
    /// A notification.
    Notification(Notification),
    /// A response.
    Response(Response),
    /// An array; only 2025-03-26 has them.
    Batch(Vec<Json>),
}

/// Why a JSON value is no JSON-RPC message.
#[derive(Clone, Debug, Error)]
#[error("{reason}")]
pub struct EnvelopeFault {
    /// The id, where one could be read, to be echoed.
    pub id: Option<RequestId>,
    /// What is wrong, in words for the caller.
    pub reason: &'static str,
}

impl Message {
    /// Reads the envelope of a checked value.
    ///
    /// # Errors
    /// [`EnvelopeFault`] when it is no JSON-RPC 2.0 message.
    pub fn read(json: &Json) -> Result<Self, EnvelopeFault> {
        match json.kind() {
            Kind::Array => return Ok(Self::Batch(json.elements().collect())),
            Kind::Object => {}
            _ => {
                return Err(EnvelopeFault {
                    id: None,
                    reason: "a JSON-RPC message is an object",
                });
            }
        }
        let mut parts = Parts::default();
        for (key, value) in json.members() {
            match &*key {
                "jsonrpc" => parts.version = Some(value),
                "id" => parts.id = Some(value),
                "method" => parts.method = Some(value),
                "params" => parts.params = Some(value),
                "result" => parts.result = Some(value),
                "error" => parts.error = Some(value),
                _ => {}
            }
        }
        parts.message()
    }
}

/// A notification.
pub fn notification_message(method: &str, params: &Json) -> Json {
    ObjectBuilder::with_capacity(params.as_str().len() + 96)
        .text("jsonrpc", "2.0")
        .text("method", method)
        .json("params", params)
        .build()
}

/// A request.
pub fn request_message(id: &RequestId, method: &str, params: &Json) -> Json {
    ObjectBuilder::with_capacity(params.as_str().len() + 128)
        .text("jsonrpc", "2.0")
        .json("id", id.json())
        .text("method", method)
        .json("params", params)
        .build()
}

/// A response with a result.
pub fn result_message(id: &RequestId, result: &Json) -> Json {
    ObjectBuilder::with_capacity(result.as_str().len() + 64)
        .text("jsonrpc", "2.0")
        .json("id", id.json())
        .json("result", result)
        .build()
}

/// The error object of a response.
pub fn error_object(code: i64, message: &str, data: Option<&Json>) -> Json {
    ObjectBuilder::new()
        .integer("code", code)
        .text("message", message)
        .maybe("data", data)
        .build()
}

/// A response with an error. Without an id it is for a request whose id could not be read.
pub fn error_message(
    id: Option<&RequestId>,
    code: i64,
    message: &str,
    data: Option<&Json>,
) -> Json {
    let error = error_object(code, message, data);
    let null = Json::null();
    ObjectBuilder::new()
        .text("jsonrpc", "2.0")
        .json("id", id.map_or(&null, RequestId::json))
        .json("error", &error)
        .build()
}

#[derive(Default)]
struct Parts {
    version: Option<Json>,
    id: Option<Json>,
    method: Option<Json>,
    params: Option<Json>,
    result: Option<Json>,
    error: Option<Json>,
}

impl Parts {
    fn message(self) -> Result<Message, EnvelopeFault> {
        let id_given = self
            .id
            .as_ref()
            .is_some_and(|id| !id.is_null() || self.method.is_some());
        let id = self.id.clone().and_then(RequestId::new);
        let fault = |reason| EnvelopeFault {
            id: id.clone(),
            reason,
        };
        if self.version.as_ref().and_then(Json::string).as_deref() != Some("2.0") {
            return Err(fault("`jsonrpc` must be \"2.0\""));
        }
        if id_given && id.is_none() {
            return Err(fault("`id` must be a string or an integer"));
        }
        if self
            .params
            .as_ref()
            .is_some_and(|params| !matches!(params.kind(), Kind::Object | Kind::Array))
        {
            return Err(fault("`params` must be an object"));
        }
        let params = self.params;
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let method = method
                    .string()
                    .ok_or_else(|| fault("`method` must be a string"))?
                    .into_owned();
                Ok(match id {
                    Some(id) => Message::Request(Request { id, method, params }),
                    None => Message::Notification(Notification { method, params }),
                })
            }
            (None, Some(result), None) => Ok(Message::Response(Response {
                id,
                outcome: Ok(result),
            })),
            (None, None, Some(error)) => Ok(Message::Response(Response {
                id,
                outcome: Err(error),
            })),
            _ => Err(fault(
                "a message has `method`, or `result`, or `error`, and only one of them",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::JsonLimits;

    fn read(text: &str) -> Result<Message, EnvelopeFault> {
        Message::read(
            &Json::parse(Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::CALLER).unwrap(),
        )
    }

    #[test]
    fn the_members_tell_what_a_message_is() {
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            Ok(Message::Request(_))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","method":"x","params":{}}"#),
            Ok(Message::Notification(_))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(Message::Response(_))
        ));
        assert!(matches!(
            read(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#),
            Ok(Message::Response(_))
        ));
        assert!(matches!(read("[]"), Ok(Message::Batch(_))));
    }

    #[test]
    fn a_fault_echoes_the_id_where_it_can_be_read() {
        for (text, id) in [
            (r#"{"id":7,"method":"ping"}"#, Some("7")),
            (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, Some("7")),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"ping","params":5}"#,
                Some("\"x\""),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"x","method":"ping","result":{}}"#,
                Some("\"x\""),
            ),
            (r#"{"jsonrpc":"2.0"}"#, None),
            ("5", None),
        ] {
            let fault = read(text).unwrap_err();
            assert_eq!(
                fault.id.map(|id| format!("{id:?}")).as_deref(),
                id,
                "{text}"
            );
        }
    }

    #[test]
    fn ids_are_compared_by_value_and_kind() {
        let id = |text: &'static str| RequestId::new(Json::from_checked(text)).unwrap();
        assert_eq!(id(r#""a""#), id(r#""\u0061""#));
        assert_ne!(id("1"), id(r#""1""#));
    }
}
