//! What is recorded besides calls: sign-ins, consents, revocations, refused
//! tokens, what administrators do, changed configurations, starts and stops.
//!
//! One compact shape for all of them, chained and signed like calls. Whoever
//! decides something that an auditor would ask about builds an [`Act`] and gives
//! it to the [`Auditor`](super::Auditor):
//!
//! * [`Auditor::act`](super::Auditor::act) returns when it is durable: for what must not
//!   take effect unrecorded (a token that is issued, a consent, a revocation, an erasure);
//! * [`Auditor::note`](super::Auditor::note) hands it over and returns at once: for what
//!   has happened anyway (a reload, a start, a session that ended);
//! * [`Auditor::count`](super::Auditor::count) is for what strangers can cause as often
//!   as they like (refused tokens, failed sign-ins): ten a second of a kind and reason are
//!   kept one by one, the rest as exact counts.
//!
//! ```ignore
//! let act = Act::new(ActKind::CONSENT, "approve")
//!     .tenant(&tenant)
//!     .actor(Actor { subject: Some(subject), client: Some(client), ..Actor::default() })
//!     .detail("scopes", "mcp crm.read");
//! let receipt = auditor.act(act).await?;
//! ```
//!
//! No secret, token, code or password belongs in an act; a person is named by
//! issuer and subject in [`Actor`] and nowhere else, since that is what erasure finds.

use std::net::IpAddr;

use serde_json::{Map, Value};
use time::OffsetDateTime;

use super::chain::Digest;
use super::event::{
    CALLER_MAX, Caller, Event, Kind, Marks, REASON_MAX, body, hexadecimal, name, storable,
};
use crate::ids::{CallId, ClientId, Issuer, Subject, TenantId};
use crate::store::audit_rows::StoredBody;

/// What sort of act. The words and numbers are part of the record's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ActKind(pub(super) Kind);

impl ActKind {
    /// `sign_in`: a person at the login page, or back from the identity provider.
    pub const SIGN_IN: Self = Self(Kind::SignIn);
    /// `consent`: asked, approved or denied.
    pub const CONSENT: Self = Self(Kind::Consent);
    /// `revocation`: of a grant, a token, a family; whoever asked for it.
    pub const REVOCATION: Self = Self(Kind::Revocation);
    /// `token_refused`: a request with no token, or one that gives no access.
    pub const TOKEN_REFUSED: Self = Self(Kind::TokenRefused);
    /// `token_issued`: by the built-in authorization server, or refused there.
    pub const TOKEN_ISSUED: Self = Self(Kind::TokenIssued);
    /// `registration`: of an OAuth client.
    pub const REGISTRATION: Self = Self(Kind::Registration);
    /// `administration`: erasures, dropped partitions, holds, approvals.
    pub const ADMINISTRATION: Self = Self(Kind::Administration);
    /// `configuration`: a changed file, adopted or refused.
    pub const CONFIGURATION: Self = Self(Kind::Configuration);
    /// `service`: a replica started or stopped.
    pub const SERVICE: Self = Self(Kind::Service);
    /// `session`: an MCP session was ended.
    pub const SESSION: Self = Self(Kind::Session);
    /// `connection`: a person connected an upstream account, or took it back.
    pub const CONNECTION: Self = Self(Kind::Connection);

    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::SIGN_IN,
        Self::CONSENT,
        Self::REVOCATION,
        Self::TOKEN_REFUSED,
        Self::TOKEN_ISSUED,
        Self::REGISTRATION,
        Self::ADMINISTRATION,
        Self::CONFIGURATION,
        Self::SERVICE,
        Self::SESSION,
        Self::CONNECTION,
    ];

    /// The word in entries and filters.
    pub fn word(self) -> &'static str {
        self.0.word()
    }

    /// The kind of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The number that is stored.
    pub fn number(self) -> i16 {
        self.0 as i16
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActOutcome {
    /// It took effect.
    Ok,
    /// It was not allowed.
    Refused,
    /// It was allowed and did not work.
    Failed,
}

impl ActOutcome {
    /// The word in entries and filters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Who acted, as far as it is known. Verified values only, but for the address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    /// `iss`, of the built-in server or of an identity provider.
    pub issuer: Option<Issuer>,
    /// `sub` there. For a command line the operating system's account.
    pub subject: Option<Subject>,
    /// OAuth client.
    pub client: Option<ClientId>,
    /// The consent that it rests on.
    pub grant: Option<String>,
    /// `jti`.
    pub token_id: Option<String>,
    /// Where from.
    pub address: Option<IpAddr>,
}

/// One act.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an act is recorded by giving it to the auditor"]
pub struct Act {
    pub(super) kind: ActKind,
    pub(super) action: &'static str,
    pub(super) tenant: Option<TenantId>,
    pub(super) actor: Actor,
    pub(super) outcome: ActOutcome,
    pub(super) reason: Option<String>,
    pub(super) details: Map<String, Value>,
    pub(super) configuration: Option<Digest>,
    pub(super) trace_id: Option<[u8; 16]>,
    pub(super) linked: Option<CallId>,
}

/// The longest details, as JSON.
const DETAILS_MAX: usize = 4096;

/// The tenant of what belongs to none: no configured tenant is named so.
pub(super) const NO_TENANT: &str = "";

impl Act {
    /// An act that took effect, of no tenant and nobody. `action` says what was done
    /// within its kind, as a word or two of the program's: `approve`, `audit.erase`.
    pub fn new(kind: ActKind, action: &'static str) -> Self {
        Self {
            kind,
            action,
            tenant: None,
            actor: Actor::default(),
            outcome: ActOutcome::Ok,
            reason: None,
            details: Map::new(),
            configuration: None,
            trace_id: None,
            linked: None,
        }
    }

    /// Whose it is: the tenant's auditors see it. Never a tenant that is only claimed.
    pub fn tenant(mut self, tenant: &TenantId) -> Self {
        self.tenant = Some(tenant.clone());
        self
    }

    /// Who acted.
    pub fn actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// It was not allowed; `reason` in a few words of the program's, the same for the same.
    pub fn refused(mut self, reason: impl Into<String>) -> Self {
        self.outcome = ActOutcome::Refused;
        self.reason = Some(reason.into());
        self
    }

    /// It did not work.
    pub fn failed(mut self, reason: impl Into<String>) -> Self {
        self.outcome = ActOutcome::Failed;
        self.reason = Some(reason.into());
        self
    }

    /// A fact about it. Together they are cut to 4 KiB of JSON.
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The configuration under which it was decided.
    pub fn configuration(mut self, digest: Digest) -> Self {
        self.configuration = Some(digest);
        self
    }

    /// The trace that it belongs to.
    pub fn trace(mut self, trace_id: Option<[u8; 16]>) -> Self {
        self.trace_id = trace_id;
        self
    }

    /// A call, or another act, that it follows from.
    pub fn follows(mut self, id: CallId) -> Self {
        self.linked = Some(id);
        self
    }

    /// In the form that is stored. `count` where it stands for several.
    pub(super) fn event(&self, id: CallId, at: OffsetDateTime, count: Option<i64>) -> Event {
        let mut marks = Marks::default();
        let tenant = self.tenant.as_ref().map_or(NO_TENANT, TenantId::as_str);
        let caller = caller(&self.actor, tenant, &mut marks);
        let details = (!self.details.is_empty()).then(|| {
            let details = serde_json::to_string(&self.details).unwrap_or_default();
            storable(&details, DETAILS_MAX, &mut marks)
        });
        let reason = self
            .reason
            .as_deref()
            .map(|reason| storable(reason, REASON_MAX, &mut marks));
        let mut event = Event::bare(at, id, self.kind.0, &TenantId::from(tenant));
        event.linked = self.linked;
        event.caller = caller;
        event.tool = Some(name(self.action));
        event.configuration = self.configuration.map(|digest| hexadecimal(&digest));
        event.outcome = Some(self.outcome.word().to_owned());
        event.measures.refused_count = count;
        event.trace_id = self.trace_id;
        event.body = body(StoredBody {
            marks: marks.0,
            arguments: details,
            reason,
            ..StoredBody::default()
        });
        event
    }
}

fn caller(actor: &Actor, tenant: &str, marks: &mut Marks) -> Option<Caller> {
    if *actor == Actor::default() {
        return None;
    }
    let mut text = |text: &str| storable(text, CALLER_MAX, marks);
    Some(Caller {
        tenant: name(tenant),
        issuer: actor.issuer.as_ref().map(|issuer| text(issuer.as_str())),
        subject: actor.subject.as_ref().map(|subject| text(subject.as_str())),
        client: actor.client.as_ref().map(|client| text(client.as_str())),
        grant: actor.grant.as_deref().map(&mut text),
        token_id: actor.token_id.as_deref().map(&mut text),
        address: actor.address.map(|address| address.to_string()),
        client_info: None,
    })
}
