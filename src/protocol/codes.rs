//! JSON-RPC error codes. MCP's own stand in its schema; Toolgate's are outside
//! every reserved range (MCP 2026-07-28 basic, Error Codes).

/// The code as a word that is one of a known few, for labels: an upstream may send
/// any number.
pub fn word(code: i64) -> &'static str {
    match code {
        PARSE_ERROR => "-32700",
        INVALID_REQUEST => "-32600",
        METHOD_NOT_FOUND => "-32601",
        INVALID_PARAMS => "-32602",
        INTERNAL_ERROR => "-32603",
        LEGACY_RESOURCE_NOT_FOUND => "-32002",
        LEGACY_URL_ELICITATION_REQUIRED => "-32042",
        HEADER_MISMATCH => "-32020",
        MISSING_CLIENT_CAPABILITY => "-32021",
        UNSUPPORTED_PROTOCOL_VERSION => "-32022",
        REFUSED => "1403",
        LIMITED => "1429",
        UNAVAILABLE => "1503",
        _ => "_OTHER",
    }
}

/// Not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Not a JSON-RPC message, or one that may not stand here.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Parameters of a wrong shape; unknown tool, resource or prompt.
pub const INVALID_PARAMS: i64 = -32602;
/// Something broke that the caller cannot mend.
pub const INTERNAL_ERROR: i64 = -32603;
/// Resource not found, in revisions up to 2025-11-25.
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// URL elicitation required, in 2025-11-25 only.
pub const LEGACY_URL_ELICITATION_REQUIRED: i64 = -32042;
/// A header disagrees with the body, or is missing.
pub const HEADER_MISMATCH: i64 = -32020;
/// The client did not declare a capability that the request needs.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The protocol version is not spoken here.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// Toolgate: refused by policy.
pub const REFUSED: i64 = 1403;
/// Toolgate: over a limit; `data.retryAfterMs` says when to come back.
pub const LIMITED: i64 = 1429;
/// Toolgate: cannot be served now; `data.retryAfterMs` says when to come back.
pub const UNAVAILABLE: i64 = 1503;
