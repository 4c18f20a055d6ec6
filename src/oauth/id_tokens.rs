//! How ID tokens are read. Providers' keys and the meaning of their claims are
//! `identity`'s, which this module does not know: it is handed two functions.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::ids::{ProviderId, Role, TenantId};
use crate::jose::Claims;

/// The claims of a token that the provider signed; `None` where it did not, or where
/// its keys cannot be had.
pub type Verify = Arc<
    dyn Fn(ProviderId, String) -> Pin<Box<dyn Future<Output = Option<Claims>> + Send>>
        + Send
        + Sync,
>;
/// Tenants and roles that claims give a person; `None` where they are not usable.
pub type Describe =
    Arc<dyn Fn(&ProviderId, &Claims) -> Option<(Vec<TenantId>, Vec<Role>)> + Send + Sync>;

/// The two of them.
#[derive(Clone)]
pub struct IdTokens {
    /// Who signed it?
    pub verify: Verify,
    /// Where does it put the person?
    pub describe: Describe,
}

impl fmt::Debug for IdTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdTokens")
    }
}
