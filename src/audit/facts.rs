//! What is recorded, in the caller's terms. Everything here is clean already:
//! arguments have passed the sanitiser, findings hold kinds and places, never
//! values.

use std::net::IpAddr;
use std::time::Duration;

use time::OffsetDateTime;

use super::chain::{Digest, sha256};
use super::event::{Marks, storable};
use crate::ids::{CallId, ClientId, Issuer, Subject, TenantId, UpstreamId};
use crate::protocol::Version;
use crate::seal::Sealer;

/// One `tools/call`, as it is known before dispatch.
#[derive(Clone, Debug)]
pub struct CallFacts {
    /// The call, used for one `start` or one `refuse` and never again.
    pub call_id: CallId,
    /// When it came in.
    pub at: OffsetDateTime,
    /// The first call of the exchange, where this is a later `input_required` round.
    pub first_call: Option<CallId>,
    /// Whose call.
    pub tenant: TenantId,
    /// `iss` of the token.
    pub issuer: Issuer,
    /// `sub` of the token.
    pub subject: Subject,
    /// The OAuth client.
    pub client: ClientId,
    /// The consent it rests on.
    pub grant: Option<String>,
    /// `jti` of the token.
    pub token_id: Option<String>,
    /// Where it came from.
    pub address: Option<IpAddr>,
    /// What the client says it is: unverified, kept apart from who it is.
    pub client_info: Option<String>,
    /// The revision spoken; it names the era too. Absent for what could not be parsed.
    pub version: Option<Version>,
    /// Where the tool is, once it was resolved. Without it `tool` is a caller's
    /// text, cut to 128 bytes and kept out of the dictionary.
    pub upstream: Option<UpstreamId>,
    /// The name that the caller used.
    pub tool: String,
    /// The tool's name at its upstream.
    pub upstream_tool: Option<String>,
    /// Digest of the definition that the caller was shown.
    pub definition_digest: Option<Digest>,
    /// Digest of the configuration that decided.
    pub config_digest: Digest,
    /// The arguments, as far as they are kept.
    pub arguments: ArgumentsRecord,
    /// Trace id (W3C Trace Context §3.2.2.3).
    pub trace_id: Option<[u8; 16]>,
    /// Bytes of the request.
    pub request_bytes: u64,
}

/// What is kept of a call's arguments. Size and digest are of the bytes that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentsRecord {
    pub(super) mode: i16,
    pub(super) bytes: u64,
    pub(super) digest: Option<Digest>,
    pub(super) excerpt: Option<String>,
    pub(super) marks: Marks,
}

/// An excerpt is cut to this many bytes.
const EXCERPT_MAX: usize = 8 * 1024;

/// Sealed arguments are cut to this many bytes: a batch of such calls must still fit
/// into one statement.
const FULL_MAX: usize = 256 * 1024;

impl ArgumentsRecord {
    pub(super) const REDACTED: i16 = 1;
    /// Sealed whole.
    pub(super) const FULL: i16 = 2;
    pub(super) const DIGEST: i16 = 3;
    pub(super) const NONE: i16 = 4;

    /// The word of a stored mode.
    pub(super) fn mode_word(stored: i16) -> Option<&'static str> {
        match stored {
            Self::REDACTED => Some("redacted"),
            Self::FULL => Some("full"),
            Self::DIGEST => Some("digest"),
            Self::NONE => Some("none"),
            _ => None,
        }
    }

    /// Arguments as the sanitiser left them, cut to 8 KiB, and the digest of `original`.
    pub fn redacted(cleaned: &str, original: &[u8]) -> Self {
        let mut marks = Marks::default();
        let excerpt = storable(cleaned, EXCERPT_MAX, &mut marks);
        Self {
            mode: Self::REDACTED,
            bytes: original.len() as u64,
            digest: Some(sha256(original)),
            excerpt: Some(excerpt),
            marks,
        }
    }

    /// Arguments as they came, sealed and bound to their call: whole up to 256 KiB,
    /// marked as cut beyond. NUL and lone surrogates are bytes like any other in here.
    pub fn full(sealer: &Sealer, call: CallId, original: &[u8]) -> Self {
        let mut marks = Marks::default();
        let kept = original.get(..FULL_MAX).unwrap_or(original);
        if kept.len() < original.len() {
            marks.0 |= Marks::CUT;
        }
        Self {
            mode: Self::FULL,
            bytes: original.len() as u64,
            digest: Some(sha256(original)),
            excerpt: Some(sealer.seal(kept, call.0.as_bytes())),
            marks,
        }
    }

    /// The digest alone.
    pub fn digest(original: &[u8]) -> Self {
        Self {
            mode: Self::DIGEST,
            digest: Some(sha256(original)),
            ..Self::none(original)
        }
    }

    /// The size alone.
    pub fn none(original: &[u8]) -> Self {
        Self {
            mode: Self::NONE,
            bytes: original.len() as u64,
            digest: None,
            excerpt: None,
            marks: Marks::default(),
        }
    }
}

/// How a call ended: the words of `rules.md` §7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tool did what it was asked.
    Ok,
    /// The tool says that it failed.
    ToolError,
    /// Refused before dispatch, by this step.
    Refused(&'static str),
    /// No answer in time.
    Timeout,
    /// The client gave up.
    Cancelled,
    /// The upstream failed, or did not speak the protocol.
    UpstreamError,
    /// Executed, and its result was kept back.
    Withheld,
    /// Nobody knows.
    Unknown,
}

impl Outcome {
    /// The word as it is stored.
    pub fn word(self) -> String {
        match self {
            Self::Ok => "ok".to_owned(),
            Self::ToolError => "tool_error".to_owned(),
            Self::Refused(step) => format!("refused:{step}"),
            Self::Timeout => "timeout".to_owned(),
            Self::Cancelled => "cancelled".to_owned(),
            Self::UpstreamError => "upstream_error".to_owned(),
            Self::Withheld => "withheld".to_owned(),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// How a call ended, and what it took.
#[derive(Clone, Debug)]
pub struct Finish {
    /// How.
    pub outcome: Outcome,
    /// Why, in a few words: the same words for the same reason, since refusals
    /// beyond the cap are counted by them. Cut to 512 bytes.
    pub reason: Option<String>,
    /// Time that the upstream took.
    pub upstream_time: Option<Duration>,
    /// Time from request to answer.
    pub total_time: Duration,
    /// Bytes of the answer.
    pub response_bytes: u64,
    /// What sanitising found: kinds, counts and places. Empty when nothing.
    pub findings: String,
}

impl Finish {
    /// Refused by `step`.
    pub fn refused(step: &'static str, reason: Option<String>, total_time: Duration) -> Self {
        Self {
            outcome: Outcome::Refused(step),
            reason,
            upstream_time: None,
            total_time,
            response_bytes: 0,
            findings: String::new(),
        }
    }
}
