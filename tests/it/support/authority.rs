//! A certificate authority of the test's own.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, PEM.
    pub(crate) pem: String,
}

/// A certificate of it and its key, PEM.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) cert: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Self { issuer, pem }
    }

    /// A certificate for these names and addresses.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(names).unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            cert: cert.pem(),
            key: key.serialize_pem(),
        }
    }

    /// A client that believes this authority alone.
    pub(crate) fn client(&self) -> reqwest::ClientBuilder {
        let own = reqwest::Certificate::from_pem(self.pem.as_bytes()).unwrap();
        reqwest::Client::builder()
            .no_proxy()
            .pool_max_idle_per_host(0)
            .tls_certs_only([own])
    }

    /// Takes TLS in front of a plain server, from clients with a certificate of this authority alone.
    pub(crate) async fn guard(&self, plain: SocketAddr) -> Guarded {
        let issued = self.issue(&["127.0.0.1", "localhost"]);
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap())
            .unwrap();
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .build()
            .unwrap();
        let config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(issued.cert.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let mut outer = acceptor.accept(stream).await.ok()?;
                    let mut inner = TcpStream::connect(plain).await.ok()?;
                    copy_bidirectional(&mut outer, &mut inner).await.ok()
                });
            }
        });
        Guarded { address, task }
    }
}

/// A guard that stands while it lives.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.task.abort();
    }
}
