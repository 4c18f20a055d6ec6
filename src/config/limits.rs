//! Limits: how often, how many at once.

use serde::Deserialize;

use super::check::Check;
use super::{Rate, WhenAway};

/// A token bucket and, where given, a cap on calls at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bucket {
    /// How fast the bucket fills.
    pub rate: Rate,
    /// How much it holds. Without it: as much as comes in one second, and at least 1.
    #[serde(default)]
    pub burst: Option<u32>,
    /// How many calls may run at the same time.
    #[serde(default)]
    pub concurrent: Option<u32>,
    /// What becomes of it while Redis is away; without it `redis.when_away` says so.
    #[serde(default)]
    pub when_away: Option<WhenAway>,
}

/// `tenants.*.limits`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantLimits {
    /// For each OAuth client of the tenant.
    pub per_client: Option<Bucket>,
    /// For each user, over all clients. Always on: a newly registered client must
    /// not come with a fresh bucket.
    pub per_user: Bucket,
    /// For the tenant as a whole.
    pub per_tenant: Option<Bucket>,
    /// For lists, `initialize`, `server/discover` and `ping`, each user: a budget
    /// of its own, so that a client can always find out where it stands.
    pub browse: Bucket,
}

impl Default for TenantLimits {
    fn default() -> Self {
        let bucket = |count, burst, concurrent| Bucket {
            rate: Rate {
                count,
                per: std::time::Duration::from_secs(1),
            },
            burst: Some(burst),
            concurrent,
            when_away: None,
        };
        Self {
            per_client: None,
            per_user: bucket(20, 40, Some(16)),
            per_tenant: None,
            browse: bucket(50, 200, None),
        }
    }
}

/// `tools[].limits`: one bucket for each tenant.
pub type ToolLimits = Bucket;

/// `edge`: limits by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EdgeLimits {
    /// Failed authentications on `/mcp`, and requests to unauthenticated
    /// endpoints, by address (IPv4 address, IPv6 /64).
    pub per_address: Bucket,
}

impl Default for EdgeLimits {
    fn default() -> Self {
        let rate = Rate {
            count: 10,
            per: std::time::Duration::from_secs(1),
        };
        Self {
            per_address: Bucket {
                rate,
                burst: Some(60),
                concurrent: None,
                when_away: None,
            },
        }
    }
}

impl Bucket {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.positive("burst", self.burst.map(u64::from));
        check.positive("concurrent", self.concurrent.map(u64::from));
    }
}

impl TenantLimits {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        for (key, bucket) in [
            ("per_client", self.per_client),
            ("per_user", Some(self.per_user)),
            ("per_tenant", self.per_tenant),
            ("browse", Some(self.browse)),
        ] {
            if let Some(bucket) = bucket {
                check.within(key, |check| bucket.validate(check));
            }
        }
    }
}

impl EdgeLimits {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("per_address", |check| self.per_address.validate(check));
    }
}
