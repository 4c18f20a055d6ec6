//! Names to addresses. The addresses given here are the ones connected to, so
//! what is judged and what is used cannot differ (DNS rebinding).

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use thiserror::Error;

use super::guard::Guard;

/// A name all of whose addresses must not be connected to.
#[derive(Debug, Error)]
#[error("{address} is not a public address")]
pub(super) struct BlockedName {
    pub(super) address: IpAddr,
}

/// Asks the system, and hands on what the guard permits.
pub(super) struct GuardedResolver {
    guard: Guard,
    /// The proxy's own name: the operator put it there, wherever it is.
    exempt: Option<String>,
}

impl GuardedResolver {
    pub(super) fn new(guard: Guard, exempt: Option<String>) -> Self {
        Self { guard, exempt }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let exempt = self
            .exempt
            .as_deref()
            .is_some_and(|exempt| exempt.eq_ignore_ascii_case(name.as_str()));
        let guard = (!exempt).then(|| self.guard.clone());
        Box::pin(async move {
            let all: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let permitted: Vec<SocketAddr> = all
                .iter()
                .copied()
                .filter(|address| guard.as_ref().is_none_or(|g| g.permits(address.ip())))
                .collect();
            match (permitted.is_empty(), all.first()) {
                (true, Some(first)) => Err(BlockedName {
                    address: first.ip(),
                }
                .into()),
                _ => Ok(Box::new(permitted.into_iter()) as Addrs),
            }
        })
    }
}

/// Gives one pinned address, whatever the name.
pub(super) struct PinnedResolver(pub(super) SocketAddr);

impl Resolve for PinnedResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let address = self.0;
        Box::pin(async move { Ok(Box::new(std::iter::once(address)) as Addrs) })
    }
}
