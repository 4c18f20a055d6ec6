//! Who calls: the token judged, refusals charged to the address and put on record.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;

use super::super::base::{metadata_url, resource};
use super::super::bearer::{self, Challenge};
use super::{Site, keys_unavailable, too_many};
use crate::audit::{Act, ActKind, Actor};
use crate::identity::{IdentityFault, Principal};
use crate::mcp::{Answer, Inbound};
use crate::tenancy::{self, TenantContext};

impl Site {
    /// The caller, or the challenge. A failure spends the address's bucket.
    pub(super) async fn authenticated(
        &self,
        headers: &HeaderMap,
    ) -> Result<TenantContext, Response> {
        let Some(token) = bearer::token(headers) else {
            return Err(self.challenged(Challenge::NoToken, self.refusal("no_token")));
        };
        let resource = resource(&self.base, self.tenant.as_ref());
        let principal = match self
            .snapshot
            .identity
            .verify(token, &resource, self.own_issuer())
            .await
        {
            Ok(principal) => principal,
            Err(IdentityFault::KeysUnavailable { .. }) => return Err(keys_unavailable()),
            Err(fault) => {
                let mut refusal = self.refusal(fault.reason());
                if let IdentityFault::TenantNotTrusted {
                    provider,
                    subject,
                    tenant,
                } = &fault
                {
                    // The token is genuine: the provider is set up wrongly, or reaches too far.
                    tracing::warn!(identity_provider = %provider, %subject, tenant.claimed = %tenant, "A provider's token claims a tenant that the provider is not trusted for.");
                    refusal.actor.subject = Some(subject.clone());
                    // What is only claimed is a detail, never whose record it is.
                    refusal.act = refusal
                        .act
                        .detail("provider", provider.as_str())
                        .detail("claimed_tenant", tenant.as_str());
                }
                return Err(self.challenged(Challenge::InvalidToken(&fault.to_string()), refusal));
            }
        };
        let known = Arc::clone(&principal);
        tenancy::resolve(principal, self.tenant.as_ref(), &self.snapshot.tenants).map_err(|fault| {
            let mut refusal = self.refusal(fault.reason());
            refusal.actor = actor(&known, self.address);
            if self.snapshot.tenants.get(known.tenant()).is_some() {
                refusal.act = refusal.act.tenant(known.tenant());
            } else {
                let claimed = known.tenant().as_str();
                refusal.act = refusal.act.detail("claimed_tenant", claimed);
            }
            self.challenged(Challenge::InvalidToken(&fault.to_string()), refusal)
        })
    }

    /// A refusal for this reason, before anything is known of who was refused.
    fn refusal(&self, reason: &'static str) -> TokenRefusal {
        TokenRefusal {
            reason,
            act: Act::new(ActKind::TOKEN_REFUSED, "mcp").configuration(self.snapshot.digest),
            actor: Actor {
                address: Some(self.address),
                ..Actor::default()
            },
        }
    }

    fn challenged(&self, why: Challenge<'_>, refusal: TokenRefusal) -> Response {
        self.edge.metrics.authentication_failure(refusal.reason);
        let act = refusal.act.actor(refusal.actor).refused(refusal.reason);
        self.edge.auditor.count(&act);
        if let Err(wait) = self.snapshot.edge.charge(self.address) {
            return too_many(wait);
        }
        bearer::unauthorized(why, &metadata_url(&self.base, self.tenant.as_ref()))
    }

    /// Ends a session, and puts on record who ended it.
    pub(super) async fn ended(&self, inbound: Inbound) -> Answer {
        let principal = Arc::clone(inbound.context.principal());
        let tenant = inbound.context.tenant_id().clone();
        let answer = self.edge.server.delete(inbound).await;
        if matches!(&answer, Answer::Reply(reply) if reply.status == 204) {
            let act = Act::new(ActKind::SESSION, "end")
                .tenant(&tenant)
                .actor(actor(&principal, self.address));
            self.edge.auditor.count(&act);
        }
        answer
    }
}

/// A token that gives no access, for counters and the record.
struct TokenRefusal {
    reason: &'static str,
    act: Act,
    actor: Actor,
}

fn actor(principal: &Principal, address: std::net::IpAddr) -> Actor {
    Actor {
        issuer: Some(principal.issuer().clone()),
        subject: Some(principal.subject().clone()),
        client: Some(principal.client().clone()),
        grant: principal.grant().map(str::to_owned),
        token_id: principal.token_id().map(str::to_owned),
        address: Some(address),
    }
}
