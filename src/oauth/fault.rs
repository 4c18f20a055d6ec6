//! Why a request is refused, in the words of the RFCs.

use thiserror::Error;

use super::Unrecorded;
use crate::store::StoreError;

/// Why an authorization request gets no code, told to the client through the
/// browser (RFC 6749 §4.1.2.1, RFC 8707 §2, `OpenID` Connect Core §3.1.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A parameter is missing, repeated or wrong.
    InvalidRequest(&'static str),
    /// The client may not use the code flow.
    UnauthorizedClient,
    /// The person said no, or has no place here.
    AccessDenied(&'static str),
    /// `response_type` is not `code`.
    UnsupportedResponseType,
    /// None of the scopes can be granted.
    InvalidScope,
    /// `resource` is none of ours.
    InvalidTarget,
    /// `prompt=none`, and somebody would have to sign in.
    LoginRequired,
    /// `prompt=none`, and somebody would have to consent.
    ConsentRequired,
    /// Something of ours is away.
    TemporarilyUnavailable,
}

impl Refusal {
    /// `error`
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidRequest(_) => "invalid_request",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::AccessDenied(_) => "access_denied",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::LoginRequired => "login_required",
            Self::ConsentRequired => "consent_required",
            Self::TemporarilyUnavailable => "temporarily_unavailable",
        }
    }

    /// `error_description`: ASCII, without quotes and backslashes.
    pub fn description(self) -> &'static str {
        match self {
            Self::InvalidRequest(words) | Self::AccessDenied(words) => words,
            Self::UnauthorizedClient => "the client may not use the authorization code flow",
            Self::UnsupportedResponseType => "response_type must be code",
            Self::InvalidScope => "none of the scopes can be granted",
            Self::InvalidTarget => "resource must be the URL of an MCP endpoint of this service",
            Self::LoginRequired => "somebody must sign in, and prompt is none",
            Self::ConsentRequired => "somebody must consent, and prompt is none",
            Self::TemporarilyUnavailable => "try again shortly",
        }
    }
}

/// Why a step between the browser and a code fails.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StepFault {
    /// Told to the client by the redirect.
    #[error("{}", .0.description())]
    Refused(Refusal),
    /// Told on a page: the redirect cannot be trusted any more.
    #[error("{0}")]
    Page(&'static str),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be put on record, and so did not happen.
    #[error("what was asked for could not be put on record")]
    Unrecorded,
}

impl From<Refusal> for StepFault {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Unrecorded> for StepFault {
    fn from(_: Unrecorded) -> Self {
        Self::Unrecorded
    }
}

/// Why the token, revocation or introspection endpoint refuses (RFC 6749 §5.2,
/// RFC 8707 §2). What a stranger sent is in none of the texts.
#[derive(Debug, Error)]
pub enum TokenFault {
    /// A parameter is missing, repeated or wrong.
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// The client is unknown, or has not proved who it is.
    #[error("{0}")]
    InvalidClient(&'static str),
    /// Code, refresh token or assertion is not good, or is another client's.
    #[error("{0}")]
    InvalidGrant(&'static str),
    /// The client may not use this grant.
    #[error("the client may not use this grant type")]
    UnauthorizedClient,
    /// There is no such grant.
    #[error("the grant type is not supported")]
    UnsupportedGrantType,
    /// More than was granted, or nothing that is known.
    #[error("the scope is unknown, or more than was granted")]
    InvalidScope,
    /// `resource` is not the grant's.
    #[error("resource must be the URL of the MCP endpoint that was authorized")]
    InvalidTarget,
    /// Something that a try later may find.
    #[error("try again shortly")]
    Unavailable,
    /// It could not be put on record, and so did not happen.
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no key to sign with.
    #[error(transparent)]
    Keys(#[from] super::KeysFault),
}

impl TokenFault {
    /// `error`
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidRequest(_) => "invalid_request",
            Self::InvalidClient(_) => "invalid_client",
            Self::InvalidGrant(_) => "invalid_grant",
            Self::UnauthorizedClient => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
            Self::Unavailable | Self::Unrecorded(_) | Self::Store(_) | Self::Keys(_) => {
                "temporarily_unavailable"
            }
        }
    }

    /// Whether it is ours to mend, and the same request may do later.
    pub fn is_ours(&self) -> bool {
        self.code() == "temporarily_unavailable"
    }
}
