//! The authorization server's events on record. What took effect is durable before
//! anybody is told; what was refused anybody can cause as often as they like, so it is
//! counted and never waited for.

use uuid::Uuid;

use super::visit::Visit;
use crate::audit::{Act, ActKind, Actor};
use crate::ids::{ClientId, Issuer, Subject, TenantId};
use crate::oauth::{Event, RegistrationFault, StepFault, TokenFault};

impl Visit {
    /// Puts on record what happened, before anything is answered.
    ///
    /// # Errors
    /// `Unrecorded`: then the answer must not leave.
    pub(super) async fn record(&self, events: Vec<Event>) -> Result<(), StepFault> {
        let mut outcome = Ok(());
        for event in events {
            let refused = matches!(event, Event::Refused { .. } | Event::Denied { .. });
            if refused {
                tracing::info!(?event, "A sign-in came to nothing.");
            }
            let act = self.act(event);
            if refused {
                self.edge.auditor.count(&act);
            } else if let Err(fault) = self.edge.auditor.record(&act).await {
                tracing::error!(
                    %fault,
                    "A step of the authorization server is not on record yet; its answer is withheld."
                );
                // It has taken effect: it goes on record as soon as that is possible again.
                self.edge.auditor.note(&act);
                outcome = Err(StepFault::Unrecorded);
            }
        }
        outcome
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
        self.edge.auditor.count(&match why {
            TokenFault::Unavailable | TokenFault::Store(_) | TokenFault::Keys(_) => {
                act.failed(why.code())
            }
            _ => act.refused(why.code()),
        });
    }

    /// Counts a registration that was refused.
    pub(super) fn count_registration_fault(&self, why: &RegistrationFault) {
        let act = Act::new(ActKind::REGISTRATION, "register")
            .configuration(self.snapshot.digest)
            .actor(self.actor(None, None));
        self.edge.auditor.count(&match why {
            RegistrationFault::Store(_) => act.failed(why.code()),
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
            } => {
                let act = act(ActKind::SIGN_IN, "sign_in").actor(self.actor(Some(subject), client));
                match &tenant {
                    Some(tenant) => act.tenant(tenant),
                    None => act,
                }
            }
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
