//! The limits by identity: which buckets a request spends, and where they are counted:
//! together with the other replicas, or here.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::admission::{Admission, LimitFault, ToolClass};
use super::charge::{Charge, Charges};
use super::local::Local;
use super::shared::{Away, Shared};
use super::ticks::Ticks;
use crate::tenancy::TenantContext;

/// What a request spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Work for an upstream: `tools/call`, `resources/read`, `prompts/get`,
    /// `completion/complete`, refused ones too.
    Call,
    /// Finding out where one stands: lists, `initialize`, `server/discover`, `ping`.
    Browse,
}

/// The limits.
#[derive(Debug)]
pub struct Limits {
    local: Local,
    shared: Option<Arc<Shared>>,
}

impl Limits {
    /// Counts here alone. No state yet: everybody's buckets are full.
    pub fn new(ticks: Ticks) -> Self {
        Self {
            local: Local::new(ticks),
            shared: None,
        }
    }

    /// Counts together with the other replicas; here while their store is away.
    #[must_use]
    pub fn with(mut self, shared: Shared) -> Self {
        self.shared = Some(Arc::new(shared));
        self
    }

    /// Whether replicas count together.
    pub fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// So many replicas live: what is counted here is divided among them. How many
    /// it was before.
    pub fn divide(&self, replicas: u32) -> u32 {
        self.local.divide(replicas)
    }

    /// Keeps the connection to the shared store and the leases in it until `ending`.
    pub async fn keep(&self, ending: CancellationToken) {
        if let Some(shared) = &self.shared {
            shared.keep(ending).await;
        }
    }

    /// Lets a request of a known caller in.
    pub async fn admit(&self, caller: &TenantContext, cost: Cost) -> Result<Admission, LimitFault> {
        let limits = caller.rules().limits();
        let principal = caller.principal();
        let user = |policy, bucket| Charge {
            policy,
            bucket,
            who: [principal.issuer().as_str(), principal.subject().as_str()],
        };
        if cost == Cost::Browse {
            return self.charge(caller, &[user("browse", &limits.browse)]).await;
        }
        let mut charges = Vec::with_capacity(3);
        charges.push(user("user", &limits.per_user));
        charges.extend(limits.per_client.as_ref().map(|bucket| Charge {
            policy: "client",
            bucket,
            who: [principal.client().as_str(), ""],
        }));
        charges.extend(limits.per_tenant.as_ref().map(|bucket| Charge {
            policy: "tenant",
            bucket,
            who: ["", ""],
        }));
        self.charge(caller, &charges).await
    }

    /// Lets a call of a tool of a limited class in, after [`Limits::admit`].
    pub async fn admit_tool(
        &self,
        caller: &TenantContext,
        class: &ToolClass,
    ) -> Result<Admission, LimitFault> {
        let charge = Charge {
            policy: "tool",
            bucket: &class.bucket,
            who: [&class.rule, ""],
        };
        self.charge(caller, &[charge]).await
    }

    /// Forgets what need not be known any more. To be called every few seconds;
    /// meters also sweep on their own when they grow.
    pub fn tidy(&self) {
        self.local.tidy();
    }

    /// How many buckets are kept here, for the metrics.
    pub fn keys(&self) -> usize {
        self.local.keys()
    }

    async fn charge(
        &self,
        caller: &TenantContext,
        charges: &[Charge<'_>],
    ) -> Result<Admission, LimitFault> {
        let charges = Charges {
            tenant: caller.tenant_id(),
            of: charges,
        };
        if let Some(shared) = &self.shared {
            match shared.charge(charges).await {
                Ok(decided) => return decided.map_err(LimitFault::from),
                Err(Away) => shared.stand_in(charges)?,
            }
        }
        Ok(self.local.charge(charges)?)
    }
}
