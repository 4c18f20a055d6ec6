//! The accept loop: TLS, time limits on heads, dead peers noticed, graceful end.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::ConnectInfo;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::tls::Tls;

/// How long a client may take for the head of a request, idle time included.
const HEAD_PATIENCE: Duration = Duration::from_secs(75);
/// How long a client may take to agree on TLS.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// How long written bytes may stay unacknowledged before the peer counts as gone.
const PEER_PATIENCE: Duration = Duration::from_secs(30);
/// A pause after the accept call fails (no file handles left), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound listener.
pub struct Listening {
    listener: TcpListener,
    tls: Option<Tls>,
    /// The address, with the port that was given for port 0.
    pub address: SocketAddr,
}

impl Listening {
    /// Binds. Connections are plain without `tls`.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub async fn bind(address: SocketAddr, tls: Option<Tls>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self {
            listener,
            tls,
            address,
        })
    }
}

/// Serves until `closing`, then lets open connections end; gives them `patience`.
pub async fn serve(
    listening: Listening,
    router: Router,
    closing: CancellationToken,
    patience: Duration,
) {
    let graceful = GracefulShutdown::new();
    loop {
        tokio::select! {
            accepted = listening.listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let acceptor = listening.tls.as_ref().map(Tls::acceptor);
                    let (router, watcher) = (router.clone(), graceful.watcher());
                    // A client that takes its time with TLS holds nobody up.
                    tokio::spawn(connection(stream, peer, acceptor, router, watcher));
                }
                Err(error) => {
                    tracing::warn!(%error, "A connection could not be accepted.");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            () = closing.cancelled() => break,
        }
    }
    drop(listening);
    if timeout(patience, graceful.shutdown()).await.is_err() {
        tracing::warn!("Connections were still open at the end of the drain and are cut.");
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    watcher: Watcher,
) {
    if let Err(error) = notice_dead_peers(&stream) {
        tracing::debug!(%error, "A socket's options could not be set.");
    }
    let Some(acceptor) = acceptor else {
        return requests(stream, peer, router, watcher).await;
    };
    match timeout(HANDSHAKE_PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => requests(stream, peer, router, watcher).await,
        Ok(Err(error)) => {
            tracing::debug!(%error, client.address = %peer, "A TLS handshake failed.");
        }
        Err(_) => tracing::debug!(client.address = %peer, "A TLS handshake took too long."),
    }
}

/// Serves the requests of one connection.
async fn requests<S>(stream: S, peer: SocketAddr, router: Router, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = tower::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PEER_PATIENCE)
        .max_concurrent_streams(256);
    let connection = builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "A connection ended early.");
    }
}

fn notice_dead_peers(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(PEER_PATIENCE)
            .with_interval(PEER_PATIENCE / 3),
    )?;
    socket.set_tcp_user_timeout(Some(PEER_PATIENCE))
}
