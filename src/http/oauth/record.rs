//! The authorization server's events on record. What takes effect is durable before it
//! does; what was refused anybody can cause as often as they like, so it is counted and
//! never waited for.

use std::pin::Pin;

use uuid::Uuid;

use super::visit::Visit;
use crate::audit::{Act, ActKind, Actor};
use crate::ids::{ClientId, Issuer, Subject, TenantId};
use crate::oauth::{Event, Ledger, RegistrationFault, TokenFault, Unrecorded};

impl Ledger for Visit {
    fn record(
        &self,
        event: Event,
    ) -> Pin<Box<dyn Future<Output = Result<(), Unrecorded>> + Send + '_>> {
        let act = self.act(event);
        Box::pin(async move {
            let recorded = self.edge.auditor.record(&act).await;
            recorded.map(drop).map_err(|fault| {
                tracing::error!(%fault, "A step of the authorization server cannot be put on record; it is not taken.");
                Unrecorded
            })
        })
    }

    fn note(&self, event: Event, failed: Option<&'static str>) {
        let act = self.act(event);
        self.edge.auditor.note(&match failed {
            Some(reason) => act.failed(reason),
            None => act,
        });
    }
}

impl Visit {
    /// Counts what came to nothing.
    pub(super) fn count(&self, event: Event) {
        tracing::info!(?event, "A sign-in came to nothing.");
        self.edge.auditor.count(&self.act(event));
    }

    /// Counts a request of a client that the endpoint of this name refused.
    pub(super) fn count_token_fault(&self, endpoint: &'static str, why: &TokenFault) {
        let kind = match endpoint {
            "revoke" => ActKind::REVOCATION,
            _ => ActKind::TOKEN_ISSUED,
        };
        let act = Act::new(kind, endpoint)
            .configuration(self.snapshot.digest)
            .actor(self.actor(None, None));
        self.edge.auditor.count(&if why.is_ours() {
            act.failed(why.code())
        } else {
            act.refused(why.code())
        });
    }

    /// Counts a registration that was refused.
    pub(super) fn count_registration_fault(&self, why: &RegistrationFault) {
        let act = Act::new(ActKind::REGISTRATION, "register")
            .configuration(self.snapshot.digest)
            .actor(self.actor(None, None));
        self.edge.auditor.count(&match why {
            RegistrationFault::Store(_) | RegistrationFault::Unrecorded(_) => {
                act.failed(why.code())
            }
            _ => act.refused(why.code()),
        });
    }

    /// Who acts: people and machines by the `sub` that we give them.
    fn actor(&self, subject: Option<Subject>, client: Option<ClientId>) -> Actor {
        Actor {
            issuer: subject.is_some().then(|| Issuer::from(self.base.as_str())),
            subject,
            client,
            address: Some(self.address),
            ..Actor::default()
        }
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one arm for each event, and nothing else"
    )]
    fn act(&self, event: Event) -> Act {
        let act = |kind, action| Act::new(kind, action).configuration(self.snapshot.digest);
        match event {
            Event::SignedIn {
                subject,
                tenant,
                client,
                administers,
            } => {
                let act = act(ActKind::SIGN_IN, "sign_in").actor(self.actor(Some(subject), client));
                let act = match &tenant {
                    Some(tenant) => act.tenant(tenant),
                    None => act,
                };
                if administers.is_empty() {
                    act
                } else {
                    act.detail("administers", administers)
                }
            }
            Event::Administers {
                subject,
                administers,
            } => act(ActKind::ADMINISTRATION, "roles")
                .actor(self.actor(Some(subject), None))
                .detail("administers", administers),
            Event::Continued {
                tenant,
                subject,
                upstream,
                host,
            } => act(ActKind::CONNECTION, "continue")
                .tenant(&tenant)
                .actor(self.actor(Some(subject), None))
                .detail("upstream", upstream.to_string())
                .detail("host", host),
            Event::SignedOut { subject } => {
                act(ActKind::SIGN_IN, "sign_out").actor(self.actor(Some(subject), None))
            }
            Event::Refused {
                subject,
                client,
                reason,
            } => act(ActKind::SIGN_IN, "sign_in")
                .actor(self.actor(subject, client))
                .refused(reason),
            Event::Denied { subject, client } => act(ActKind::CONSENT, "deny")
                .actor(self.actor(subject, Some(client)))
                .refused("denied"),
            Event::Consented {
                tenant,
                subject,
                client,
                grant,
                scopes,
            } => self
                .let_in(
                    act(ActKind::CONSENT, "approve"),
                    &tenant,
                    (subject, client),
                    Some(grant),
                )
                .detail("scopes", scopes),
            Event::Issued {
                tenant,
                subject,
                client,
                grant,
                by,
            } => self.let_in(
                act(ActKind::TOKEN_ISSUED, by),
                &tenant,
                (subject, client),
                grant,
            ),
            Event::Revoked {
                tenant,
                subject,
                client,
                revoked,
                reason,
            } => self
                .let_in(
                    act(ActKind::REVOCATION, reason),
                    &tenant,
                    (subject, client),
                    None,
                )
                .detail("revoked", revoked.to_string()),
            Event::Registered { client, name } => act(ActKind::REGISTRATION, "register")
                .actor(self.actor(None, Some(client)))
                .detail("name", name),
        }
    }

    /// An act about somebody whom a client is let in for.
    fn let_in(
        &self,
        act: Act,
        tenant: &TenantId,
        (subject, client): (Subject, ClientId),
        grant: Option<Uuid>,
    ) -> Act {
        let actor = Actor {
            grant: grant.map(|grant| grant.to_string()),
            ..self.actor(Some(subject), Some(client))
        };
        act.tenant(tenant).actor(actor)
    }
}
