//! What happens, as data: what rules put on the [`Ledger`](super::Ledger) before it does.

use uuid::Uuid;

use crate::ids::{ClientId, Subject, TenantId, UpstreamId};

/// Something that belongs into the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody signed in.
    SignedIn {
        /// Our `sub`.
        subject: Subject,
        /// The person's tenant, where there is only one.
        tenant: Option<TenantId>,
        /// Through which client, where one asked.
        client: Option<ClientId>,
        /// What they may administer; empty where nothing.
        administers: String,
    },
    /// An identity provider says something else of what somebody may administer.
    Administers {
        /// Our `sub`.
        subject: Subject,
        /// What it is now; empty where nothing.
        administers: String,
    },
    /// Somebody went on to a page that a tool server wanted opened.
    Continued {
        /// The tenant.
        tenant: TenantId,
        /// Our `sub`.
        subject: Subject,
        /// The upstream.
        upstream: UpstreamId,
        /// The page's host.
        host: String,
    },
    /// Somebody signed out of our pages.
    SignedOut {
        /// Our `sub`.
        subject: Subject,
    },
    /// Somebody said no to a client.
    Denied {
        /// Our `sub`, where somebody had signed in.
        subject: Option<Subject>,
        /// The client.
        client: ClientId,
    },
    /// A sign-in was refused.
    Refused {
        /// Our `sub`, where somebody had signed in.
        subject: Option<Subject>,
        /// The client.
        client: Option<ClientId>,
        /// One word.
        reason: &'static str,
    },
    /// Somebody consented to a client.
    Consented {
        /// The tenant.
        tenant: TenantId,
        /// Our `sub`.
        subject: Subject,
        /// The client.
        client: ClientId,
        /// The grant.
        grant: Uuid,
        /// The scopes, with spaces between.
        scopes: String,
    },
    /// Tokens were issued: to a client for a person, or to a machine.
    Issued {
        /// The tenant.
        tenant: TenantId,
        /// Our `sub`.
        subject: Subject,
        /// The client.
        client: ClientId,
        /// The grant; none for machines.
        grant: Option<Uuid>,
        /// Which grant type.
        by: &'static str,
    },
    /// A grant, a family of tokens or a token was revoked.
    Revoked {
        /// The tenant.
        tenant: TenantId,
        /// Our `sub`.
        subject: Subject,
        /// The client.
        client: ClientId,
        /// The grant, the family or the token.
        revoked: Uuid,
        /// One word.
        reason: &'static str,
    },
    /// A client registered itself.
    Registered {
        /// Its id.
        client: ClientId,
        /// What it calls itself.
        name: String,
    },
}
