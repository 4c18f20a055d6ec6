//! Why a token is refused.

use thiserror::Error;

use crate::ids::{ProviderId, Subject, TenantId};
use crate::jose::JoseFault;

/// Why a token does not make a principal. The texts are fit for
/// `error_description` (RFC 6750 §3): no text of the token is in them, no quote
/// and no backslash.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdentityFault {
    /// Not a signed token, or longer than is looked at.
    #[error("the token is not a signed JWT of at most 16 KiB")]
    Malformed,
    /// Its header needs an extension.
    #[error("the token's header needs an extension that is not supported")]
    Critical,
    /// `alg` is not accepted from this provider.
    #[error("the token's signature algorithm is not accepted")]
    AlgorithmRefused,
    /// `iss` is none of the configured issuers.
    #[error("the token's issuer is not trusted here")]
    UnknownIssuer,
    /// The issuer has no key of this id, now.
    #[error("the token's signing key is not one of its issuer's")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token's signature is wrong")]
    BadSignature,
    /// `exp` has passed.
    #[error("the token has expired")]
    Expired,
    /// `nbf` or `iat` is to come.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// `aud` names neither the endpoint nor a configured audience.
    #[error("the token was issued for another audience")]
    WrongAudience,
    /// An ID token: it says who signed in to a client, and gives no access.
    #[error("an ID token is not an access token")]
    IdToken,
    /// `typ` is that of another kind of token.
    #[error("the token is of a kind that is not an access token")]
    WrongType,
    /// A claim is missing, or not of the form it must have.
    #[error("the token's claim {claim} is missing or malformed")]
    BadClaim {
        /// Its name, or the configured path to it.
        claim: &'static str,
    },
    /// No claim says which tenant, and the provider has not exactly one.
    #[error("the token does not say which tenant it is for")]
    NoTenant,
    /// The claim names several tenants.
    #[error("the token names several tenants; it must be for exactly one")]
    SeveralTenants,
    /// The provider is not trusted for the tenant. To be audited: the token is
    /// genuine.
    #[error("the token's issuer is not trusted for the tenant that it names")]
    TenantNotTrusted {
        /// The provider.
        provider: ProviderId,
        /// Whom it vouches for.
        subject: Subject,
        /// The tenant that it claims.
        tenant: TenantId,
    },
    /// It was good until its grant, its family or itself was revoked.
    #[error("the token was revoked")]
    Revoked,
    /// The provider's keys cannot be had: nothing is wrong with the token, and the
    /// caller may try again.
    #[error("the keys of the token's issuer cannot be had at the moment")]
    KeysUnavailable {
        /// The provider.
        provider: ProviderId,
    },
}

impl IdentityFault {
    /// One word for counters.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Critical => "critical_header",
            Self::AlgorithmRefused => "algorithm",
            Self::UnknownIssuer => "unknown_issuer",
            Self::UnknownKey => "unknown_key",
            Self::BadSignature => "bad_signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::WrongAudience => "wrong_audience",
            Self::IdToken => "id_token",
            Self::WrongType => "wrong_type",
            Self::BadClaim { .. } => "bad_claim",
            Self::NoTenant => "no_tenant",
            Self::SeveralTenants => "several_tenants",
            Self::TenantNotTrusted { .. } => "tenant_not_trusted",
            Self::Revoked => "revoked",
            Self::KeysUnavailable { .. } => "keys_unavailable",
        }
    }
}

impl From<JoseFault> for IdentityFault {
    fn from(fault: JoseFault) -> Self {
        match fault {
            JoseFault::TooLong | JoseFault::Malformed => Self::Malformed,
            JoseFault::AlgorithmRefused => Self::AlgorithmRefused,
            JoseFault::Critical => Self::Critical,
            JoseFault::UnknownKey => Self::UnknownKey,
            JoseFault::BadSignature => Self::BadSignature,
        }
    }
}
