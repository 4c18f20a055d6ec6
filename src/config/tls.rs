//! `tls`, wherever it stands: certificates and keys, PEM.

use std::path::PathBuf;

use serde::Deserialize;

use super::check::Check;

/// What a listener shows of itself, and asks of its clients. The files are read again
/// when they change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListenerTls {
    /// The certificate, and those that lead to its authority.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
    /// Authorities of which clients must have a certificate.
    #[serde(default)]
    pub client_ca_file: Option<PathBuf>,
}

impl ListenerTls {
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let own = [&mut self.cert_file, &mut self.key_file];
        own.into_iter().chain(&mut self.client_ca_file)
    }
}

/// What is shown to a server, and believed of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientTls {
    /// Our own certificate, and those that lead to its authority.
    pub cert_file: Option<PathBuf>,
    /// Its private key.
    pub key_file: Option<PathBuf>,
    /// The only authorities that this server's certificate may be of.
    pub ca_file: Option<PathBuf>,
}

impl ClientTls {
    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let own = self.cert_file.iter_mut().chain(&mut self.key_file);
        own.chain(&mut self.ca_file)
    }

    pub(super) fn validate(&self, https: bool, check: &mut Check<'_>) {
        if !https {
            check.key_fault("is of no use over http", "write https in the URL");
        }
        match (&self.cert_file, &self.key_file) {
            (Some(_), None) => {
                check.key_fault("has a certificate without its key", "write `key_file` too");
            }
            (None, Some(_)) => {
                check.key_fault("has a key without its certificate", "write `cert_file` too");
            }
            _ => {}
        }
    }
}
