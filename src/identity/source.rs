//! Where a provider's keys come from: a file, a URL, or discovery.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use crate::config::{IdentityProvider, WatchedFile};
use crate::jose::{KeySet, KeySetFault};
use crate::outgoing::{Outgoing, OutgoingFault, metadata_urls};

/// Longest key set or metadata document that is read.
const MAX_DOCUMENT: usize = 512 * 1024;

/// Where the keys are.
pub(super) enum Source {
    /// On disk.
    File(WatchedFile),
    /// On the network.
    Remote(Remote),
}

/// Keys on the network.
pub(super) struct Remote {
    issuer: String,
    url: Option<String>,
    outgoing: Arc<Outgoing>,
}

/// Why keys were not had; for the log.
#[derive(Debug, Error)]
pub(super) enum SourceFault {
    #[error("{0}")]
    Outgoing(#[from] OutgoingFault),
    #[error("{0}")]
    KeySet(#[from] KeySetFault),
    #[error("the keys file cannot be read: {0}")]
    File(#[from] io::Error),
    #[error("the metadata document is not a JSON object with `issuer` and `jwks_uri`")]
    Metadata,
    #[error("the metadata document is of another issuer than the configured one")]
    OtherIssuer,
    #[error("the metadata document of an https issuer names keys that are not at https")]
    NotHttps,
}

/// The part of a metadata document that is needed (RFC 8414 §2).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

impl Source {
    /// Whether the keys are those of the same place.
    pub(super) fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one.path() == other.path(),
            (Self::Remote(one), Self::Remote(other)) => {
                (&one.issuer, &one.url) == (&other.issuer, &other.url)
            }
            _ => false,
        }
    }

    pub(super) fn new(provider: &IdentityProvider, outgoing: &Arc<Outgoing>) -> Self {
        match &provider.jwks_file {
            Some(path) => Self::File(WatchedFile::new(path)),
            None => Self::Remote(Remote {
                issuer: provider.issuer.clone(),
                url: provider.jwks_url.clone(),
                outgoing: Arc::clone(outgoing),
            }),
        }
    }
}

impl Remote {
    /// Fetches the keys, and how long they may be kept.
    pub(super) async fn fetch(
        &self,
        timeout: Duration,
    ) -> Result<(KeySet, Option<Duration>), SourceFault> {
        let discovered;
        let url = if let Some(url) = &self.url {
            url
        } else {
            discovered = self.discover(timeout).await?;
            &discovered
        };
        let fetched = self.outgoing.fetch_json(url, MAX_DOCUMENT, timeout).await?;
        Ok((KeySet::parse(&fetched.text)?, fetched.max_age))
    }

    /// Asks at the place of `OpenID Connect Discovery` §4, then at that of RFC 8414
    /// §3.1, unless the host itself does not answer.
    async fn discover(&self, timeout: Duration) -> Result<String, SourceFault> {
        let mut first = None;
        for url in metadata_urls(&self.issuer) {
            match self.metadata(&url, timeout).await {
                Ok(keys) => return Ok(keys),
                Err(SourceFault::Outgoing(fault))
                    if !matches!(fault, OutgoingFault::Status { .. }) =>
                {
                    return Err(fault.into());
                }
                Err(fault) => first = first.or(Some(fault)),
            }
        }
        Err(first.unwrap_or(SourceFault::Metadata))
    }

    async fn metadata(&self, url: &str, timeout: Duration) -> Result<String, SourceFault> {
        let fetched = self.outgoing.fetch_json(url, MAX_DOCUMENT, timeout).await?;
        let metadata: Metadata =
            serde_json::from_str(&fetched.text).map_err(|_| SourceFault::Metadata)?;
        if metadata.issuer != self.issuer {
            return Err(SourceFault::OtherIssuer);
        }
        let https = |url: &str| url.starts_with("https://");
        if https(&self.issuer) && !https(&metadata.jwks_uri) {
            return Err(SourceFault::NotHttps);
        }
        Ok(metadata.jwks_uri)
    }
}
