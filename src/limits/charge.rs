//! What a request spends: a bucket of the configuration, and whose it is.

use crate::config::Bucket;
use crate::ids::TenantId;

/// One bucket that a request spends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge<'a> {
    pub(super) policy: &'static str,
    pub(super) bucket: &'a Bucket,
    /// Whoever is meant in the tenant: issuer and subject, a client, a class of tools.
    pub(super) who: [&'a str; 2],
}

/// All that one admission spends, narrow to wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charges<'a> {
    pub(super) tenant: &'a TenantId,
    pub(super) of: &'a [Charge<'a>],
}
