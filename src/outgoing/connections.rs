//! Clients made from the configuration's `outgoing` section, one per reach and
//! connect time-out.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use reqwest::{Certificate, ClientBuilder, Identity, NoProxy, Proxy, Url};
use thiserror::Error;
use zeroize::Zeroizing;

use super::client::{Inner, Pinned};
use super::guard::Guard;
use super::resolver::{GuardedResolver, PinnedResolver};
use super::{HttpClient, Reach};
use crate::config;

const USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));
/// Below the idle time-out of most servers, so that a connection is seldom taken
/// from the pool in the moment its server closes it.
const POOL_IDLE: Duration = Duration::from_secs(30);
const POOL_MAX_IDLE: usize = 256;

/// The one maker of HTTP clients.
pub struct Outgoing {
    settings: Settings,
    clients: Mutex<HashMap<(Reach, Duration), HttpClient>>,
}

struct Settings {
    certificates: Vec<Certificate>,
    /// Whether the system has certificates of public authorities.
    system_roots: bool,
    proxy: Option<Url>,
    pins: Vec<(String, u16, SocketAddr)>,
    allow: Arc<[IpNet]>,
}

/// Why the section `outgoing` cannot be put to use. No secret is in it: a proxy's
/// URL may have a password.
#[derive(Debug, Error)]
pub enum OutgoingSetupFault {
    /// A file with certificates or a key cannot be read, or has none.
    #[error("`{key}`: {path} {why}")]
    File {
        /// The key that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `outgoing.proxy` is no URL of a proxy.
    #[error("`outgoing.proxy` must be a URL like http://proxy.internal:3128")]
    Proxy,
    /// A key of `outgoing.resolve` is not `host:port`.
    #[error(
        "`outgoing.resolve`: `{key}` must be a host name and a port, such as `idp.example.com:443`"
    )]
    Pin {
        /// The key.
        key: String,
    },
}

impl Outgoing {
    /// Reads the section.
    ///
    /// # Errors
    /// [`OutgoingSetupFault`] names the key that is wrong.
    pub fn new(config: &config::Outgoing) -> Result<Self, OutgoingSetupFault> {
        let certificates = match &config.ca_file {
            Some(path) => certificates("outgoing.ca_file", path)?,
            None => Vec::new(),
        };
        let proxy = config.proxy.as_deref().map(proxy).transpose()?;
        let pins = config
            .resolve
            .iter()
            .map(|(key, address)| {
                pin(key)
                    .map(|(host, port)| (host, port, *address))
                    .ok_or_else(|| OutgoingSetupFault::Pin { key: key.clone() })
            })
            .collect::<Result<_, _>>()?;
        let mut settings = Settings {
            certificates,
            system_roots: true,
            proxy,
            pins,
            allow: config.allow_networks.clone().into(),
        };
        if settings
            .builder(Duration::from_secs(1), None)
            .build()
            .is_err()
        {
            settings.system_roots = false;
            tracing::warn!(
                "the system has no certificates of certificate authorities; https works only \
                 with those of `outgoing.ca_file`"
            );
        }
        Ok(Self {
            settings,
            clients: Mutex::default(),
        })
    }

    /// A client that shows a certificate of its own, or believes authorities of its
    /// own. Its files are read now.
    ///
    /// # Errors
    /// [`OutgoingSetupFault`] names the file that is wrong.
    pub fn client_with(
        &self,
        reach: Reach,
        connect_timeout: Duration,
        tls: &config::ClientTls,
    ) -> Result<HttpClient, OutgoingSetupFault> {
        let own = OwnTls::read(tls)?;
        Ok(self.settings.client(reach, connect_timeout, Some(&own)))
    }

    /// A client. The same reach and time-out give the same client, pool included.
    pub fn client(&self, reach: Reach, connect_timeout: Duration) -> HttpClient {
        self.clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry((reach, connect_timeout))
            .or_insert_with(|| self.settings.client(reach, connect_timeout, None))
            .clone()
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

impl Settings {
    fn client(&self, reach: Reach, connect_timeout: Duration, tls: Option<&OwnTls>) -> HttpClient {
        let guard = Guard::new(reach, Arc::clone(&self.allow));
        let proxy_host = self.proxy.as_ref().and_then(|url| url.host_str());
        let mut main = self
            .builder(connect_timeout, tls)
            .dns_resolver(GuardedResolver::new(
                guard.clone(),
                proxy_host.map(str::to_owned),
            ));
        if let Some(proxy) = &self.proxy {
            // What is on this very host is not to be looked for on the proxy's.
            let direct = NoProxy::from_string("localhost,127.0.0.0/8,::1");
            main = match Proxy::all(proxy.clone()) {
                Ok(proxy) => main.proxy(proxy.no_proxy(direct)),
                Err(_) => main,
            };
        }
        let pins = self.pins.iter().filter_map(|(host, port, address)| {
            let resolver = PinnedResolver(*address);
            let client = self.builder(connect_timeout, tls).dns_resolver(resolver);
            let client = client.build();
            client.ok().map(|client| Pinned {
                host: host.clone(),
                port: *port,
                address: *address,
                client,
            })
        });
        HttpClient::new(Inner {
            guard,
            pins: pins.collect(),
            client: main.build().ok(),
        })
    }

    /// HTTP/1.1 only: each exchange has a connection of its own, so that a slow
    /// stream holds up no other, and dropping one ends just that one.
    fn builder(&self, connect_timeout: Duration, tls: Option<&OwnTls>) -> ClientBuilder {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that makes HTTP clients"
        )]
        let builder = reqwest::Client::builder();
        let builder = builder
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd()
            .http1_only()
            .user_agent(USER_AGENT)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_mins(1))
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_MAX_IDLE)
            .connect_timeout(connect_timeout);
        let builder = match tls.and_then(|own| own.identity.clone()) {
            Some(identity) => builder.identity(identity),
            None => builder,
        };
        if let Some(authorities) = tls.and_then(|own| own.authorities.as_ref()) {
            return builder.tls_certs_only(authorities.iter().cloned());
        }
        let certificates = self.certificates.iter().cloned();
        if self.system_roots {
            builder.tls_certs_merge(certificates)
        } else {
            builder.tls_certs_only(certificates)
        }
    }
}

fn fault(key: &'static str, path: &Path, why: impl Into<String>) -> OutgoingSetupFault {
    OutgoingSetupFault::File {
        key,
        path: path.to_owned(),
        why: why.into(),
    }
}

fn pem(key: &'static str, path: &Path) -> Result<Vec<u8>, OutgoingSetupFault> {
    std::fs::read(path).map_err(|error| fault(key, path, format!("cannot be read: {error}")))
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<Certificate>, OutgoingSetupFault> {
    match Certificate::from_pem_bundle(&pem(key, path)?) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(fault(key, path, "has no certificate in PEM form")),
    }
}

/// A client's own certificate, and the only authorities that it believes.
struct OwnTls {
    identity: Option<Identity>,
    authorities: Option<Vec<Certificate>>,
}

impl OwnTls {
    fn read(config: &config::ClientTls) -> Result<Self, OutgoingSetupFault> {
        let identity = match (&config.cert_file, &config.key_file) {
            (Some(cert), Some(key)) => {
                let mut both = Zeroizing::new(pem("tls.key_file", key)?);
                both.push(b'\n');
                both.extend(pem("tls.cert_file", cert)?);
                let wrong = "and the key beside it are no certificate and key in PEM form";
                let identity = Identity::from_pem(&both);
                Some(identity.map_err(|_| fault("tls.cert_file", cert, wrong))?)
            }
            _ => None,
        };
        let authorities = config.ca_file.as_deref();
        let authorities = authorities.map(|path| certificates("tls.ca_file", path));
        Ok(Self {
            identity,
            authorities: authorities.transpose()?,
        })
    }
}

fn proxy(text: &str) -> Result<Url, OutgoingSetupFault> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
        .ok_or(OutgoingSetupFault::Proxy)
}

/// `host:port`. An address as host could not be pinned: it needs no resolving.
fn pin(key: &str) -> Option<(String, u16)> {
    let (host, port) = key.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let host = host.to_ascii_lowercase();
    let is_name = !host.is_empty() && !host.contains(':') && host.parse::<IpAddr>().is_err();
    is_name.then_some((host, port))
}
