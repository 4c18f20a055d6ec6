//! A header whose value stands in a file.

use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::HeaderName;
use zeroize::Zeroizing;

use super::CredentialFault;
use crate::config::{HeaderCredential, WatchedFile};
use crate::ids::UpstreamId;
use crate::secret::Secret;
use crate::upstream::Credential;

/// One configured header; its value is read again when the file changes.
pub(super) struct HeaderFile {
    upstream: UpstreamId,
    name: HeaderName,
    file: WatchedFile,
    value: ArcSwap<Secret<String>>,
}

impl HeaderFile {
    pub(super) fn new(
        upstream: &UpstreamId,
        config: &HeaderCredential,
        now: i64,
    ) -> Result<Self, CredentialFault> {
        let name = config
            .name
            .parse::<HeaderName>()
            .ok()
            .filter(|name| !RESERVED.contains(&name.as_str()))
            .ok_or_else(|| CredentialFault::Name {
                upstream: upstream.clone(),
            })?;
        let file = WatchedFile::new(&config.value_file);
        let value = file
            .changed(now, value_of)
            .unwrap_or(Err(UNREADABLE))
            .map_err(|why| CredentialFault::Value {
                upstream: upstream.clone(),
                path: file.path().to_owned(),
                why,
            })?;
        Ok(Self {
            upstream: upstream.clone(),
            name,
            file,
            value: ArcSwap::from_pointee(value),
        })
    }

    /// The header to send now. A file that goes wrong leaves the value that was
    /// read before.
    pub(super) fn credential(&self, now: i64) -> Credential {
        let changed = self.file.changed(now, |content| {
            value_of(content).map(|value| self.value.store(Arc::new(value)))
        });
        if let Some(Err(why)) = changed {
            tracing::warn!(
                upstream = %self.upstream,
                file = %self.file.path().display(),
                why,
                "an upstream's credential could not be read; the one read before stays in use"
            );
        }
        Credential {
            name: self.name.as_str().to_owned(),
            value: Secret::clone(&self.value.load()),
        }
    }
}

const UNREADABLE: &str = "it cannot be read";

fn value_of(content: io::Result<Zeroizing<String>>) -> Result<Secret<String>, &'static str> {
    let content = content.map_err(|_| UNREADABLE)?;
    let value = Secret::new(content.trim().to_owned());
    if value.expose().is_empty() {
        return Err("it is empty");
    }
    if value
        .expose()
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~'))
    {
        Ok(value)
    } else {
        Err("a header's value is one line of visible ASCII")
    }
}

/// Headers that the transport itself sets (RFC 9110 §7.6.1; the MCP transport).
const RESERVED: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
