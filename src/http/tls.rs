//! TLS of a listener: 1.2 and 1.3, HTTP/2 and HTTP/1.1, and certificates that are
//! exchanged while it runs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use crate::clock::{Clock as _, SystemClock};
use crate::config::{ListenerTls, WatchedFile};

/// Why a listener cannot speak TLS.
#[derive(Debug, Error)]
pub enum TlsFault {
    /// A file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file has nothing of what it should have, or something broken.
    #[error("{path} has no {what} in PEM form")]
    Empty {
        /// The file.
        path: PathBuf,
        /// What it should have.
        what: &'static str,
    },
    /// The parts do not fit together.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(String),
}

/// What connections are accepted with, as the files say now.
pub struct Tls {
    settings: ListenerTls,
    files: Vec<WatchedFile>,
    current: ArcSwap<ServerConfig>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsFault`] names the file that is wrong.
    pub fn load(settings: &ListenerTls) -> Result<Self, TlsFault> {
        let current = ArcSwap::from_pointee(read(settings)?);
        let mut paths = vec![&settings.cert_file, &settings.key_file];
        paths.extend(&settings.client_ca_file);
        let tls = Self {
            settings: settings.clone(),
            files: paths.into_iter().map(WatchedFile::new).collect(),
            current,
        };
        tls.has_changed();
        Ok(tls)
    }

    /// What a connection that comes now is accepted with. Files that go wrong change
    /// nothing: the last good ones serve on.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        if self.has_changed() {
            match read(&self.settings) {
                Ok(config) => {
                    self.current.store(Arc::new(config));
                    tracing::info!("The listener's certificate was read again.");
                }
                Err(fault) => {
                    tracing::warn!(error = %fault, "The listener's new certificate cannot be used; the old one is kept.");
                }
            }
        }
        TlsAcceptor::from(self.current.load_full())
    }

    fn has_changed(&self) -> bool {
        let now = SystemClock.unix_seconds();
        // All are looked at: two may have changed at once.
        let changed = self
            .files
            .iter()
            .filter_map(|file| file.changed(now, |_| ()));
        changed.count() > 0
    }
}

fn read(settings: &ListenerTls) -> Result<ServerConfig, TlsFault> {
    let unusable = |error: &dyn std::error::Error| TlsFault::Unusable(error.to_string());
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(|error| unusable(&error))?;
    let builder = match &settings.client_ca_file {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| unusable(&error))?)
        }
    };
    let chain = certificates(&settings.cert_file)?;
    let key = key(&settings.key_file)?;
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn pem(path: &Path) -> Result<Vec<u8>, TlsFault> {
    std::fs::read(path).map_err(|error| TlsFault::Unreadable {
        path: path.to_owned(),
        error,
    })
}

fn empty(path: &Path, what: &'static str) -> TlsFault {
    let path = path.to_owned();
    TlsFault::Empty { path, what }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let pem = pem(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let all = all.ok().filter(|all| !all.is_empty());
    all.ok_or_else(|| empty(path, "certificate"))
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFault> {
    let pem = zeroize::Zeroizing::new(pem(path)?);
    PrivateKeyDer::from_pem_slice(&pem).map_err(|_| empty(path, "private key"))
}

fn roots(path: &Path) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(certificates(path)?);
    if taken == 0 {
        return Err(empty(path, "certificate of an authority"));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("toolgate-tls-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_is_wrong_with_the_files_is_said() {
        let folder = Folder::new("wrong");
        let (cert, key) = made();
        let (_, other) = made();
        let load = |cert: PathBuf, key: PathBuf, client_ca_file: Option<PathBuf>| {
            let settings = ListenerTls {
                cert_file: cert,
                key_file: key,
                client_ca_file,
            };
            Tls::load(&settings).err().map(|fault| fault.to_string())
        };
        let cert = folder.file("cert", &cert);
        let key = folder.file("key", &key);
        assert_eq!(load(cert.clone(), key.clone(), None), None);
        assert_eq!(load(cert.clone(), key.clone(), Some(cert.clone())), None);
        let none = folder.file("none", "nothing\n");
        for (fault, part) in [
            (
                load(folder.0.join("away"), key.clone(), None),
                "away cannot be read",
            ),
            (load(none.clone(), key.clone(), None), "has no certificate"),
            (load(cert.clone(), none.clone(), None), "has no private key"),
            (
                load(cert.clone(), folder.file("other", &other), None),
                "cannot be used",
            ),
            (
                load(cert.clone(), key.clone(), Some(none)),
                "has no certificate",
            ),
        ] {
            let fault = fault.unwrap_or_else(|| panic!("no fault: {part}"));
            assert!(fault.contains(part), "{fault}");
        }
    }
}
