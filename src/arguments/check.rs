//! The check, and the proof that it passed.

use thiserror::Error;

use super::headers;
use super::message;
use crate::catalog::{ParamKind, Tool};
use crate::protocol::Json;
use crate::protocol::json::Kind;
use crate::visibility::Visible;

/// Largest arguments that are checked.
const MOST_BYTES: usize = 4 << 20;

/// A call whose arguments fit. [`check`] is its only maker.
#[derive(Clone, Debug)]
pub struct ValidCall {
    tool: Visible<Tool>,
    arguments: Json,
}

impl ValidCall {
    /// What is called.
    pub fn tool(&self) -> &Visible<Tool> {
        &self.tool
    }

    /// The arguments as they came; `{}` where none came.
    pub fn arguments(&self) -> &Json {
        &self.arguments
    }

    /// The arguments that the upstream wants mirrored: header name and plain value
    /// (MCP 2026-07-28 Streamable HTTP, Custom Headers from Tool Parameters).
    pub fn param_headers(&self) -> Vec<(String, String)> {
        headers::mirrored(&self.tool, &self.arguments)
    }
}

/// Arguments that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArgumentFault {
    /// `arguments` is no object: the request is malformed, and a model cannot mend it.
    #[error("arguments must be an object, not {came}")]
    NotAnObject {
        /// What came instead, as JSON Schema names types.
        came: &'static str,
    },
    /// The schema refuses them: the message is for the model.
    #[error("{message}")]
    Invalid {
        /// What is wrong where, what was expected, and an example that would pass.
        message: String,
    },
}

/// Checks the arguments of a call.
pub fn check(tool: &Visible<Tool>, arguments: Option<Json>) -> Result<ValidCall, ArgumentFault> {
    let arguments = arguments
        .filter(|arguments| !arguments.is_null())
        .unwrap_or_else(Json::empty_object);
    if arguments.kind() != Kind::Object {
        let came = arguments.kind().name();
        return Err(ArgumentFault::NotAnObject { came });
    }
    judge(tool, &arguments).map_err(|message| ArgumentFault::Invalid { message })?;
    Ok(ValidCall {
        tool: tool.clone(),
        arguments,
    })
}

fn judge(tool: &Tool, arguments: &Json) -> Result<(), String> {
    let schema = &tool.input;
    let bytes = arguments.as_str().len();
    let most = schema.most_bytes().unwrap_or(MOST_BYTES).min(MOST_BYTES);
    if bytes > most {
        return Err(message::too_large(bytes, most));
    }
    if arguments.as_str() == "{}" && schema.accepts_nothing() {
        return Ok(());
    }
    let Ok(value) = arguments.to_value() else {
        return Err(message::out_of_range(arguments));
    };
    if !schema.accepts(&value) {
        return Err(message::of_faults(schema, &value));
    }
    for header in tool.param_headers.iter() {
        let at = headers::at(arguments, &header.path);
        let unsafe_number = header.kind == ParamKind::Integer
            && at.is_some_and(|at| {
                at.kind() == Kind::Number && headers::whole(at.as_str()).is_none()
            });
        if unsafe_number {
            return Err(message::unsafe_integer(&header.path));
        }
    }
    Ok(())
}
