//! Who calls: a bearer token becomes a [`Principal`], or is refused.
//!
//! It believes the tokens of configured identity providers, each for its own tenants,
//! and of the built-in authorization server, whose keys it takes from the store (RFC 9068 in spirit, RFC 8725 throughout). It knows no HTTP answer,
//! no tenant's rules and no user store. Nothing that a token says is used before
//! its signature is verified, except `iss`, which chooses the provider.

mod claims;
mod fault;
mod keys;
mod own;
mod person;
mod principal;
mod source;
mod verifier;

pub use fault::IdentityFault;
pub use keys::KeyTimings;
pub use own::{OWN_PROVIDER, OwnIssuer, OwnTokens, Signed};
pub use person::PersonClaims;
pub use principal::{Principal, PrincipalKey};
pub use verifier::{Identity, IdentitySetupFault};

#[cfg(test)]
mod tests;
