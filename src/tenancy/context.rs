//! The proof that a caller belongs to a tenant that exists and was asked for.
//! Knows no HTTP: the edge says what a refusal looks like.

use std::sync::Arc;

use thiserror::Error;

use super::{TenantRules, Tenants};
use crate::identity::Principal;
use crate::ids::TenantId;

/// A caller within its tenant. [`resolve`] is its only maker.
#[derive(Clone, Debug)]
pub struct TenantContext {
    principal: Arc<Principal>,
    tenant: Arc<TenantRules>,
}

impl TenantContext {
    /// Who calls.
    pub fn principal(&self) -> &Arc<Principal> {
        &self.principal
    }

    /// The tenant that it belongs to.
    pub fn tenant_id(&self) -> &TenantId {
        self.tenant.id()
    }

    /// What holds in that tenant.
    pub fn rules(&self) -> &Arc<TenantRules> {
        &self.tenant
    }
}

/// Why a caller has no place here. The two must look alike from outside, or a
/// stranger could try out which tenants exist: both are 401 `invalid_token`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TenancyRefusal {
    /// The token's tenant is not configured.
    #[error("the token is not valid for this endpoint")]
    UnknownTenant,
    /// The token's tenant is not the one that the path names.
    #[error("the token is not valid for this endpoint")]
    ForeignTenant,
}

impl TenancyRefusal {
    /// The word for records and logs, which outsiders do not see.
    pub fn reason(self) -> &'static str {
        match self {
            Self::UnknownTenant => "unknown_tenant",
            Self::ForeignTenant => "foreign_tenant",
        }
    }
}

/// Places a caller in its tenant. `path_tenant` is the one that the URL fixes;
/// `/mcp` fixes none.
pub fn resolve(
    principal: Arc<Principal>,
    path_tenant: Option<&TenantId>,
    tenants: &Tenants,
) -> Result<TenantContext, TenancyRefusal> {
    if path_tenant.is_some_and(|tenant| tenant != principal.tenant()) {
        return Err(TenancyRefusal::ForeignTenant);
    }
    let tenant = tenants
        .get(principal.tenant())
        .ok_or(TenancyRefusal::UnknownTenant)?;
    Ok(TenantContext { principal, tenant })
}
