//! Credentials by upstream.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use indexmap::IndexMap;
use thiserror::Error;

use super::header_file::HeaderFile;
use crate::clock::SharedClock;
use crate::config::Upstream;
use crate::ids::UpstreamId;
use crate::upstream::Credential;

/// Why there is no credential where one is configured. The upstream must not be
/// asked without it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CredentialFault {
    /// The configured name is none, or one that the transport sets itself.
    #[error(
        "`upstreams.{upstream}.credentials.header.name` is not the name of a header that may be set"
    )]
    Name {
        /// Whose.
        upstream: UpstreamId,
    },
    /// The value cannot be had.
    #[error("`upstreams.{upstream}.credentials.header.value_file`: {path}: {why}")]
    Value {
        /// Whose.
        upstream: UpstreamId,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
}

/// The credentials of all upstreams.
pub struct Credentials {
    headers: HashMap<UpstreamId, HeaderFile>,
    clock: SharedClock,
}

impl Credentials {
    /// Takes the configured credentials and reads their files.
    ///
    /// # Errors
    /// [`CredentialFault`], for the first that cannot be had.
    pub fn new(
        upstreams: &IndexMap<UpstreamId, Upstream>,
        clock: SharedClock,
    ) -> Result<Self, CredentialFault> {
        let now = clock.unix_seconds();
        let mut headers = HashMap::new();
        for (id, upstream) in upstreams {
            if let Some(config) = &upstream.credentials.header {
                let header = HeaderFile::new(id, config, now)?;
                headers.insert(id.clone(), header);
            }
        }
        Ok(Self { headers, clock })
    }

    /// What to send to an upstream; `None` where nothing is configured.
    ///
    /// # Errors
    /// [`CredentialFault`] where something is configured and cannot be had.
    pub fn for_upstream(
        &self,
        upstream: &UpstreamId,
    ) -> Result<Option<Credential>, CredentialFault> {
        let header = self.headers.get(upstream);
        Ok(header.map(|header| header.credential(self.clock.unix_seconds())))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({} upstreams)", self.headers.len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::clock::ManualClock;

    fn file(content: &str) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolgate-credential-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn credentials(
        name: &str,
        path: &std::path::Path,
    ) -> (Result<Credentials, CredentialFault>, Arc<ManualClock>) {
        let with: Upstream = serde_json::from_value(serde_json::json!({
            "mcp": { "url": "https://up.example.com/mcp" },
            "credentials": { "header": { "name": name, "value_file": path } },
        }))
        .unwrap();
        let without: Upstream = serde_json::from_value(serde_json::json!({})).unwrap();
        let upstreams = [("search".into(), with), ("open".into(), without)];
        let clock = Arc::new(ManualClock::new(time::OffsetDateTime::UNIX_EPOCH));
        let shared = Arc::<ManualClock>::clone(&clock);
        (
            Credentials::new(&upstreams.into_iter().collect(), shared),
            clock,
        )
    }

    fn value(credentials: &Credentials) -> String {
        let credential = credentials.for_upstream(&"search".into()).unwrap();
        credential.unwrap().value.expose().clone()
    }

    #[test]
    fn only_a_configured_upstream_has_a_credential() {
        let path = file("Bearer UP2\n");
        let (credentials, _) = credentials("Authorization", &path);
        let credentials = credentials.unwrap();
        let credential = credentials.for_upstream(&"search".into()).unwrap().unwrap();
        assert_eq!(credential.name, "authorization");
        assert_eq!(credential.value.expose(), "Bearer UP2");
        assert!(!format!("{credential:?} {credentials:?}").contains("UP2"));
        assert_eq!(credentials.for_upstream(&"open".into()), Ok(None));
        assert_eq!(credentials.for_upstream(&"other".into()), Ok(None));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_value_is_read_again_when_its_file_changes_and_kept_when_it_goes_wrong() {
        let path = file("old");
        let (credentials, clock) = credentials("x-api-key", &path);
        let credentials = credentials.unwrap();
        assert_eq!(value(&credentials), "old");
        std::fs::write(&path, "newer").unwrap();
        assert_eq!(value(&credentials), "old", "looked at once a second");
        clock.advance(Duration::from_secs(1));
        assert_eq!(value(&credentials), "newer");
        for wrong in ["", " \n", "two\nlines"] {
            std::fs::write(&path, wrong).unwrap();
            clock.advance(Duration::from_secs(1));
            assert_eq!(value(&credentials), "newer");
        }
        std::fs::remove_file(&path).unwrap();
        clock.advance(Duration::from_secs(1));
        assert_eq!(value(&credentials), "newer");
    }

    #[test]
    fn a_value_that_no_header_can_hold_is_refused_and_not_shown() {
        for wrong in [
            "",
            "\n",
            "hunter2\r\nx-injected: 1",
            "hunter2\u{0}",
            "hunter2 \u{e9}",
        ] {
            let path = file(wrong);
            let fault = credentials("x-api-key", &path).0.unwrap_err();
            assert!(matches!(fault, CredentialFault::Value { .. }));
            assert!(!fault.to_string().contains("hunter2"));
            std::fs::remove_file(path).unwrap();
        }
        let missing = credentials("x-api-key", "/nowhere/value".as_ref()).0;
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .contains("upstreams.search.credentials")
        );
    }

    #[test]
    fn a_header_of_the_transport_cannot_be_a_credential() {
        for name in [
            "",
            "a b",
            "Host",
            "Content-Length",
            "Mcp-Session-Id",
            "Transfer-Encoding",
        ] {
            let path = file("x");
            let fault = credentials(name, &path).0.unwrap_err();
            assert!(matches!(fault, CredentialFault::Name { .. }), "{name}");
            std::fs::remove_file(path).unwrap();
        }
    }
}
