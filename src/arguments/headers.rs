//! Arguments that are mirrored into `Mcp-Param-*` headers: header and body must
//! say the same, or two parties on the way act on different calls
//! (MCP 2026-07-28 Streamable HTTP, Server Validation).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use crate::catalog::{ParamHeader, Tool};
use crate::protocol::Json;
use crate::protocol::json::Kind;

/// Largest whole number that every client can read: 2^53 - 1.
const MOST: i64 = (1 << 53) - 1;

/// Why headers and arguments disagree. The texts quote no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeaderFault {
    /// The argument is there, its header is not.
    #[error("Header mismatch: {header} is missing, but the argument {pointer} is given")]
    Missing {
        /// The header.
        header: String,
        /// JSON pointer of the argument.
        pointer: String,
    },
    /// The header is there, its argument is not.
    #[error("Header mismatch: {header} is given, but the argument {pointer} is not")]
    Extra {
        /// The header.
        header: String,
        /// JSON pointer of the argument.
        pointer: String,
    },
    /// Both are there and differ.
    #[error("Header mismatch: {header} does not match the argument {pointer}")]
    Different {
        /// The header.
        header: String,
        /// JSON pointer of the argument.
        pointer: String,
    },
    /// The header stands twice, has characters that no header may have, or its
    /// Base64 form is none.
    #[error("Header mismatch: {header} is malformed")]
    Malformed {
        /// The header.
        header: String,
    },
}

/// Compares the `Mcp-Param-*` headers of a request with its arguments. Headers
/// that the tool does not know are nobody's business here (ibid., Server Behavior
/// for Custom Headers).
pub fn check_headers(
    tool: &Tool,
    arguments: Option<&Json>,
    headers: &[(String, String)],
) -> Result<(), HeaderFault> {
    for param in tool.param_headers.iter() {
        let argument = arguments.and_then(|arguments| at(arguments, &param.path));
        let mut given = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(&param.header))
            .map(|(_, value)| value.as_str());
        let first = given.next();
        if given.next().is_some() {
            return Err(HeaderFault::Malformed {
                header: param.header.clone(),
            });
        }
        compare(param, argument.as_ref(), first)?;
    }
    Ok(())
}

fn compare(
    param: &ParamHeader,
    argument: Option<&Json>,
    header: Option<&str>,
) -> Result<(), HeaderFault> {
    let name = || param.header.clone();
    let pointer = || pointer(&param.path);
    let decoded = header.map(decoded);
    let decoded = match decoded {
        Some(None) => return Err(HeaderFault::Malformed { header: name() }),
        Some(text) => text,
        None => None,
    };
    match (argument, decoded) {
        (None, None) => Ok(()),
        // No header can say an array or an object; the schema refuses them anyway.
        (Some(argument), None) if plain(argument).is_none() => Ok(()),
        (Some(_), None) => Err(HeaderFault::Missing {
            header: name(),
            pointer: pointer(),
        }),
        (None, Some(_)) => Err(HeaderFault::Extra {
            header: name(),
            pointer: pointer(),
        }),
        (Some(argument), Some(text)) if same(argument, &text) => Ok(()),
        (Some(_), Some(_)) => Err(HeaderFault::Different {
            header: name(),
            pointer: pointer(),
        }),
    }
}

fn same(argument: &Json, text: &str) -> bool {
    if argument.kind() == Kind::Number {
        // `42.0` and `42` are the same number (ibid., note on integers).
        return match (whole(argument.as_str()), whole(text)) {
            (Some(a), Some(b)) => a == b,
            _ => argument.as_str() == text,
        };
    }
    plain(argument).as_deref() == Some(text)
}

/// A whole number that every client can read, however it is written.
pub(super) fn whole(text: &str) -> Option<i64> {
    let number = match text.parse::<i64>() {
        Ok(number) => number,
        Err(_) => whole_float(text.parse().ok()?)?,
    };
    (-MOST..=MOST).contains(&number).then_some(number)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the number is whole and within what a double holds exactly"
)]
fn whole_float(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= MOST as f64).then_some(number as i64)
}

/// A value as a header says it; `null` has none.
fn plain(argument: &Json) -> Option<String> {
    match argument.kind() {
        Kind::String => argument.string().map(Into::into),
        Kind::Bool => Some(argument.as_str().to_owned()),
        Kind::Number => Some(
            whole(argument.as_str())
                .map_or_else(|| argument.as_str().to_owned(), |number| number.to_string()),
        ),
        Kind::Null | Kind::Array | Kind::Object => None,
    }
}

/// The text of a header value, out of its Base64 form where it has it.
fn decoded(value: &str) -> Option<String> {
    if !value
        .bytes()
        .all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
    {
        return None;
    }
    let inner = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match inner {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The argument at a path; `null` counts as none.
pub(super) fn at(arguments: &Json, path: &[String]) -> Option<Json> {
    let mut value = arguments.clone();
    for name in path {
        value = value.get(name)?;
    }
    (!value.is_null()).then_some(value)
}

pub(super) fn pointer(path: &[String]) -> String {
    let escaped = path
        .iter()
        .map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1")));
    escaped.collect()
}

/// The headers that mirror the arguments of a call, in the schema's order.
pub(super) fn mirrored(tool: &Tool, arguments: &Json) -> Vec<(String, String)> {
    let params = tool.param_headers.iter();
    params
        .filter_map(|param| {
            let value = plain(&at(arguments, &param.path)?)?;
            Some((param.header.clone(), value))
        })
        .collect()
}
