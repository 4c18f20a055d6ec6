//! Newtype identifiers. They know nothing but their own form.
//!
//! Identifiers that an operator configures are compared as the exact strings
//! configured: no case folding, no normalising of URLs (RFC 8414 §3.3).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The exact text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// A tenant: the boundary of isolation. The key of `tenants` in the configuration.
    TenantId
}
text_id! {
    /// Where tools come from. The key of `upstreams` in the configuration.
    UpstreamId
}
text_id! {
    /// An entry of `identity_providers` in the configuration.
    ProviderId
}
text_id! {
    /// The OAuth client that a token was issued to (`azp` or `client_id`).
    ClientId
}
text_id! {
    /// The `sub` of a token, meaningful only together with its issuer.
    Subject
}
text_id! {
    /// The `iss` of a token, byte for byte (RFC 9207 §2.4).
    Issuer
}
text_id! {
    /// A role that a token claims, as the tenant's configuration names it.
    Role
}
text_id! {
    /// An OAuth scope (RFC 6749 §3.3).
    Scope
}
text_id! {
    /// A tool's name as callers see it: the upstream's prefix and the tool's own name.
    ToolName
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid_id! {
    /// One `tools/call`: a `UUIDv7`, so that look-ups by call id can prune by its time.
    CallId
}
uuid_id! {
    /// One running process of the service.
    ReplicaId
}
uuid_id! {
    /// One legacy session.
    SessionId
}
