//! A tiny HTTP/1.1 server for the tests of this crate: it counts connections and
//! keeps the requests that came.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// What a server does with a request: head and body in, the bytes of an answer out.
pub(crate) type Handler = Box<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

/// A server on a free port of 127.0.0.1.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    handler: Handler,
    connections: AtomicUsize,
    requests: Mutex<Vec<String>>,
}

/// An answer with a body, kept alive.
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

impl TestServer {
    pub(crate) async fn start(handler: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::serve(handler, None).await
    }

    pub(crate) async fn start_tls(
        acceptor: tokio_rustls::TlsAcceptor,
        handler: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::serve(handler, Some(acceptor)).await
    }

    async fn serve(
        handler: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            handler: Box::new(handler),
            connections: AtomicUsize::new(0),
            requests: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                let state = Arc::clone(&shared);
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => state.exchange(stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                state.exchange(stream).await;
                            }
                        }
                    }
                });
            }
        });
        Self {
            address,
            state,
            task,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections were accepted.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// The requests so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    /// How many requests were for a path.
    pub(crate) fn count(&self, path: &str) -> usize {
        let wanted = format!("GET {path} ");
        let requests = self.requests();
        requests.iter().filter(|r| r.starts_with(&wanted)).count()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    async fn exchange(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut buffer = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            if let Some(length) = complete(&buffer) {
                let request: Vec<u8> = buffer.drain(..length).collect();
                let request = String::from_utf8_lossy(&request).into_owned();
                self.requests.lock().unwrap().push(request.clone());
                let answer = (self.handler)(&request);
                if stream.write_all(&answer).await.is_err() {
                    return;
                }
                if !answer.starts_with(b"HTTP/1.1") || answer.ends_with(b"!close") {
                    return;
                }
                continue;
            }
            match stream.read(&mut chunk).await {
                Ok(length) if length > 0 => buffer.extend_from_slice(&chunk[..length]),
                _ => return,
            }
        }
    }
}

fn complete(buffer: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(buffer);
    let head = text.find("\r\n\r\n")? + 4;
    let length = text
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse::<usize>().ok())?
        })
        .unwrap_or(0);
    (buffer.len() >= head + length).then_some(head + length)
}
