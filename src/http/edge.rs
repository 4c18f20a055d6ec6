//! Limits by address, for callers that are not known yet. On the MCP endpoint
//! only a failed authentication spends the bucket: one office shares one address.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use tower_governor::GovernorError;
use tower_governor::governor::{GovernorConfig, GovernorConfigBuilder};
use tower_governor::key_extractor::KeyExtractor;

use crate::config::EdgeLimits;
use crate::limits::address_key;

/// The caller's address, put into a request's extensions by the outermost layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallerAddress(pub(super) IpAddr);

/// Keys the bucket by the caller's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByAddress;

impl KeyExtractor for ByAddress {
    type Key = IpAddr;

    fn extract<T>(&self, request: &Request<T>) -> Result<IpAddr, GovernorError> {
        request
            .extensions()
            .get::<CallerAddress>()
            .map(|address| address_key(address.0))
            .ok_or(GovernorError::UnableToExtractKey)
    }
}

type Settings = GovernorConfig<ByAddress, governor_middleware::NoOp>;

mod governor_middleware {
    //! The middleware type that `tower_governor`'s builder settles on.
    pub(super) type NoOp = crate::limits::NoOpMiddleware<crate::limits::QuantaInstant>;
}

/// The buckets by address.
#[derive(Clone)]
pub struct EdgeLimiter {
    settings: Arc<Settings>,
    period: Duration,
}

impl EdgeLimiter {
    /// Buckets as configured. `None` only for settings that `config` refuses.
    pub fn new(limits: &EdgeLimits) -> Option<Self> {
        let bucket = limits.per_address;
        let count = NonZeroU32::new(bucket.rate.count)?;
        let period = bucket.rate.per / count.get();
        let burst = bucket.burst.unwrap_or(bucket.rate.count).max(1);
        let settings = GovernorConfigBuilder::default()
            .period(period)
            .burst_size(burst)
            .key_extractor(ByAddress)
            .finish()?;
        Some(Self {
            settings: Arc::new(settings),
            period,
        })
    }

    /// Settings for the layer of unauthenticated endpoints.
    pub(super) fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings)
    }

    /// Charges one failed authentication. The error says when to come back.
    pub(super) fn charge(&self, address: IpAddr) -> Result<(), Duration> {
        self.settings
            .limiter()
            .check_key(&address_key(address))
            .map_err(|_| self.period.max(Duration::from_secs(1)))
    }

    /// Forgets addresses whose buckets are full again.
    pub fn sweep(&self) {
        self.settings.limiter().retain_recent();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_spend_the_bucket_and_then_wait() {
        let per_address = crate::config::Bucket {
            rate: "5/m".parse().unwrap(),
            burst: Some(5),
            concurrent: None,
            when_away: None,
        };
        let edge = EdgeLimiter::new(&EdgeLimits { per_address }).unwrap();
        let one: IpAddr = "198.51.100.4".parse().unwrap();
        for _ in 0..5 {
            assert!(edge.charge(one).is_ok());
        }
        assert!(edge.charge(one).is_err());
        assert!(edge.charge("198.51.100.5".parse().unwrap()).is_ok());
    }
}
