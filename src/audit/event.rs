//! An event: a call's facts in the form that is stored, before it has a place
//! in a chain. Made in the caller's task, so that salting and hashing bodies
//! spreads over all cores and the lanes only order and write.

use std::time::Duration;

use time::{OffsetDateTime, UtcOffset};

use super::chain::body_digest;
use super::facts::{CallFacts, Finish, Outcome};
use crate::clock::random;
use crate::ids::{CallId, ClientId, TenantId};
use crate::protocol::Version;
use crate::store::audit_rows::{Measures, StoredBody};

/// Kinds of event. Numbers from 16 on are for events that are not calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i16)]
pub(super) enum Kind {
    Started = 1,
    Finished = 2,
    Refused = 3,
    /// The outcome of an event whose caller had been told that it failed.
    Corrected = 4,
    /// A `started` that nobody will finish any more: its replica is gone or its
    /// deadline passed. Says when that was noticed; what became of the call nobody knows.
    Closed = 5,
    SignIn = 16,
    Consent = 17,
    Revocation = 18,
    TokenRefused = 19,
    TokenIssued = 20,
    Registration = 21,
    Administration = 22,
    Configuration = 23,
    Service = 24,
    Session = 25,
    Connection = 26,
}

impl Kind {
    /// The word in entries and filters; the first three are one entry, `call`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Started | Self::Finished | Self::Refused | Self::Corrected | Self::Closed => {
                "call"
            }
            Self::SignIn => "sign_in",
            Self::Consent => "consent",
            Self::Revocation => "revocation",
            Self::TokenRefused => "token_refused",
            Self::TokenIssued => "token_issued",
            Self::Registration => "registration",
            Self::Administration => "administration",
            Self::Configuration => "configuration",
            Self::Service => "service",
            Self::Session => "session",
            Self::Connection => "connection",
        }
    }
}

/// What was done to texts so that they could be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks(pub(super) i16);

impl Marks {
    pub(super) const NUL_ESCAPED: i16 = 1;
    pub(super) const CUT: i16 = 2;

    fn set(&mut self, mark: i16) {
        self.0 |= mark;
    }
}

/// `text` as Postgres can hold it: NUL, which no text column takes, becomes the
/// six characters `\u0000` and is marked; what is longer than `max` bytes is cut
/// at a character and marked.
pub(super) fn storable(text: &str, max: usize, marks: &mut Marks) -> String {
    let mut text = if text.contains('\0') {
        marks.set(Marks::NUL_ESCAPED);
        text.replace('\0', "\\u0000")
    } else {
        text.to_owned()
    };
    if text.len() > max {
        marks.set(Marks::CUT);
        text.truncate(text.floor_char_boundary(max));
    }
    text
}

/// Who called: the key of a row of `audit_callers`. One that calls for two
/// tenants has two rows, so that each tenant's readers see their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Caller {
    pub(super) tenant: String,
    pub(super) issuer: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) client: Option<String>,
    pub(super) grant: Option<String>,
    pub(super) token_id: Option<String>,
    pub(super) address: Option<String>,
    pub(super) client_info: Option<String>,
}

/// An event without its place in a chain.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at: OffsetDateTime,
    pub(super) call_id: CallId,
    pub(super) linked: Option<CallId>,
    pub(super) kind: Kind,
    pub(super) tenant: String,
    pub(super) caller: Option<Caller>,
    pub(super) version: Option<&'static str>,
    pub(super) tool: Option<String>,
    pub(super) upstream: Option<String>,
    pub(super) upstream_tool: Option<String>,
    pub(super) definition: Option<String>,
    pub(super) configuration: Option<String>,
    pub(super) arguments_mode: Option<i16>,
    pub(super) outcome: Option<String>,
    pub(super) measures: Measures,
    pub(super) trace_id: Option<[u8; 16]>,
    pub(super) body: Option<StoredBody>,
}

/// The longest entry of the dictionary.
const NAME_MAX: usize = 256;
/// The longest text about a caller.
pub(super) const CALLER_MAX: usize = 1024;
/// The longest unresolved tool name (design §10).
const UNRESOLVED_MAX: usize = 128;
pub(super) const REASON_MAX: usize = 512;
const FINDINGS_MAX: usize = 4096;

impl Event {
    /// An event with nothing but its key.
    pub(super) fn bare(at: OffsetDateTime, call_id: CallId, kind: Kind, tenant: &TenantId) -> Self {
        Self {
            at: micros(at),
            call_id,
            linked: None,
            kind,
            tenant: name(tenant.as_str()),
            caller: None,
            version: None,
            tool: None,
            upstream: None,
            upstream_tool: None,
            definition: None,
            configuration: None,
            arguments_mode: None,
            outcome: None,
            measures: Measures::default(),
            trace_id: None,
            body: None,
        }
    }

    /// The call is about to be dispatched.
    pub(super) fn started(facts: &CallFacts) -> Self {
        Self::of_call(facts, Kind::Started, None)
    }

    /// The call was refused: facts and outcome in one.
    pub(super) fn refused(facts: &CallFacts, finish: &Finish) -> Self {
        let mut event = Self::of_call(facts, Kind::Refused, Some(finish));
        event.outcome = Some(name(&finish.outcome.word()));
        finish_measures(&mut event.measures, finish);
        event
    }

    /// The call has ended.
    pub(super) fn finished(
        call_id: CallId,
        tenant: &TenantId,
        at: OffsetDateTime,
        finish: &Finish,
    ) -> Self {
        let mut event = Self::bare(at, call_id, Kind::Finished, tenant);
        event.outcome = Some(name(&finish.outcome.word()));
        finish_measures(&mut event.measures, finish);
        let mut marks = Marks::default();
        let (reason, findings) = finish_texts(finish, &mut marks);
        event.body = body(StoredBody {
            marks: marks.0,
            reason,
            findings,
            ..StoredBody::default()
        });
        event
    }

    /// What became of an event whose caller had been told that it failed.
    pub(super) fn correction(of: &Self, at: OffsetDateTime, outcome: &str) -> Self {
        Self {
            outcome: Some(outcome.to_owned()),
            ..Self::bare(at, of.call_id, Kind::Corrected, &of.tenant.as_str().into())
        }
    }

    /// A call that was started and will not be finished, as far as anybody knows.
    pub(super) fn closed(call_id: CallId, tenant: &str, at: OffsetDateTime, why: &str) -> Self {
        Self {
            outcome: Some(Outcome::Unknown.word()),
            body: body(StoredBody {
                reason: Some(why.to_owned()),
                ..StoredBody::default()
            }),
            ..Self::bare(at, call_id, Kind::Closed, &tenant.into())
        }
    }

    /// Refusals of one client, for one reason, in one second.
    pub(super) fn counted(
        call_id: CallId,
        at: OffsetDateTime,
        tenant: &TenantId,
        client: Option<&ClientId>,
        outcome: &str,
        reason: Option<&str>,
        count: i64,
    ) -> Self {
        let mut marks = Marks::default();
        let reason = reason.map(|reason| storable(reason, REASON_MAX, &mut marks));
        let mut event = Self::bare(at, call_id, Kind::Refused, tenant);
        event.outcome = Some(name(outcome));
        event.measures.refused_count = Some(count);
        event.caller = client.map(|client| Caller {
            tenant: name(tenant.as_str()),
            client: Some(storable(client.as_str(), CALLER_MAX, &mut marks)),
            ..Caller::default()
        });
        event.body = body(StoredBody {
            marks: marks.0,
            reason,
            ..StoredBody::default()
        });
        event
    }

    fn of_call(facts: &CallFacts, kind: Kind, finish: Option<&Finish>) -> Self {
        let mut marks = facts.arguments.marks;
        let resolved = facts.upstream.is_some();
        let caller = caller(facts, &mut marks);
        let unresolved = (!resolved).then(|| storable(&facts.tool, UNRESOLVED_MAX, &mut marks));
        let (reason, findings) =
            finish.map_or((None, None), |finish| finish_texts(finish, &mut marks));
        let arguments = &facts.arguments;
        let body = body(StoredBody {
            marks: marks.0,
            arguments_digest: arguments.digest.map(|digest| digest.to_vec()),
            arguments: arguments.excerpt.clone(),
            tool: unresolved,
            reason,
            findings,
            ..StoredBody::default()
        });
        Self {
            linked: facts.first_call,
            caller: Some(caller),
            version: facts.version.map(Version::as_str),
            tool: resolved.then(|| name(&facts.tool)),
            upstream: facts.upstream.as_ref().map(|id| name(id.as_str())),
            upstream_tool: facts.upstream_tool.as_deref().map(name),
            definition: facts.definition_digest.map(|digest| hexadecimal(&digest)),
            configuration: Some(hexadecimal(&facts.config_digest)),
            measures: Measures {
                request_bytes: Some(size(facts.request_bytes)),
                arguments_bytes: Some(size(arguments.bytes)),
                ..Measures::default()
            },
            arguments_mode: Some(arguments.mode),
            trace_id: facts.trace_id,
            body,
            ..Self::bare(facts.at, facts.call_id, kind, &facts.tenant)
        }
    }

    /// Every text that is stored as an id.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [
            Some(self.tenant.as_str()),
            self.version,
            self.tool.as_deref(),
            self.upstream.as_deref(),
            self.upstream_tool.as_deref(),
            self.definition.as_deref(),
            self.configuration.as_deref(),
            self.outcome.as_deref(),
        ]
        .into_iter()
        .flatten()
    }
}

fn caller(facts: &CallFacts, marks: &mut Marks) -> Caller {
    let mut text = |text: &str| Some(storable(text, CALLER_MAX, marks));
    Caller {
        tenant: name(facts.tenant.as_str()),
        issuer: text(facts.issuer.as_str()),
        subject: text(facts.subject.as_str()),
        client: text(facts.client.as_str()),
        grant: facts.grant.as_deref().and_then(&mut text),
        token_id: facts.token_id.as_deref().and_then(&mut text),
        address: facts.address.map(|address| address.to_string()),
        client_info: facts.client_info.as_deref().and_then(text),
    }
}

fn finish_texts(finish: &Finish, marks: &mut Marks) -> (Option<String>, Option<String>) {
    let reason = finish
        .reason
        .as_deref()
        .map(|reason| storable(reason, REASON_MAX, marks));
    let findings =
        (!finish.findings.is_empty()).then(|| storable(&finish.findings, FINDINGS_MAX, marks));
    (reason, findings)
}

fn finish_measures(measures: &mut Measures, finish: &Finish) {
    measures.response_bytes = Some(size(finish.response_bytes));
    measures.total_micros = Some(duration(finish.total_time));
    measures.upstream_micros = finish.upstream_time.map(duration);
}

/// A body with its salt and digest; none where it says nothing.
pub(super) fn body(mut body: StoredBody) -> Option<StoredBody> {
    if body == StoredBody::default() {
        return None;
    }
    let salt = random::<16>();
    body.digest = body_digest(&salt, &body).to_vec();
    body.salt = Some(salt.to_vec());
    Some(body)
}

pub(super) fn name(text: &str) -> String {
    // What the dictionary holds is the operator's or an upstream's; a mark would be lost here.
    storable(text, NAME_MAX, &mut Marks::default())
}

/// Lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| DIGITS.get(usize::from(digit)))
        .collect()
}

fn size(bytes: u64) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

fn duration(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Postgres keeps microseconds; what is hashed must be what is stored.
pub(super) fn micros(at: OffsetDateTime) -> OffsetDateTime {
    let at = at.to_offset(UtcOffset::UTC);
    at.replace_nanosecond(at.microsecond() * 1_000)
        .unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_escaped_visibly_and_marked() {
        let mut marks = Marks::default();
        assert_eq!(storable("n\0", 128, &mut marks), "n\\u0000");
        assert_eq!(marks.0, Marks::NUL_ESCAPED);
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let mut marks = Marks::default();
        assert_eq!(storable("aéé", 4, &mut marks), "aé");
        assert_eq!(marks.0, Marks::CUT);
    }

    #[test]
    fn escapes_of_json_are_text_like_any_other() {
        let mut marks = Marks::default();
        let text = r#"{"a\u0000b":"\ud800"}"#;
        assert_eq!(storable(text, 128, &mut marks), text);
        assert_eq!(marks, Marks::default());
    }
}
