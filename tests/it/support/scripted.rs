//! An MCP server inside the test, whose answers the test writes itself, to the
//! byte. It has a thread of its own, so that a test that blocks does not stop it.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use super::{Era, Value, json};

/// What the server does with a `tools/list` or a `tools/call`.
pub(crate) enum Say {
    /// This is the JSON-RPC `result`, as it stands.
    Result(String),
    /// This is the whole HTTP answer, as it stands.
    Http(String),
    /// The connection is closed without a word.
    Hangup,
    /// Nothing, until the client goes away.
    Nothing,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `POST`, `GET` or `DELETE`.
    pub(crate) http_method: String,
    /// Its headers, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Its body as text.
    pub(crate) text: String,
    /// Its body as JSON.
    pub(crate) message: Value,
}

/// The running server. Gone when dropped, its connections with it.
#[derive(Debug)]
pub(crate) struct Scripted {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Script = Box<dyn Fn(&Asked) -> Say + Send + Sync>;

struct Shared {
    era: Era,
    script: Script,
    seen: Mutex<Vec<Asked>>,
    accepted: AtomicUsize,
}

impl Asked {
    /// One header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC method.
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// The tool that a call names.
    pub(crate) fn tool(&self) -> &str {
        self.message["params"]["name"].as_str().unwrap_or_default()
    }
}

/// The result that lists these definitions, as they stand.
pub(crate) fn listing(definitions: &[&str]) -> Say {
    let head = r#""ttlMs":0,"cacheScope":"private","resultType":"complete""#;
    Say::Result(format!(r#"{{{head},"tools":[{}]}}"#, definitions.join(",")))
}

/// The definition of a tool without parameters.
pub(crate) fn plain(name: &str) -> String {
    json!({"name": name, "description": "Does something.", "inputSchema": {"type": "object"}})
        .to_string()
}

/// A result with one text.
pub(crate) fn text(text: &str) -> Say {
    Say::Result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}

impl Scripted {
    /// A server on a free port. The script answers `tools/list` and `tools/call`.
    pub(crate) fn start(era: Era, script: impl Fn(&Asked) -> Say + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), era, script)
    }

    /// The same on this port.
    pub(crate) fn at_port(
        port: u16,
        era: Era,
        script: impl Fn(&Asked) -> Say + Send + Sync + 'static,
    ) -> Self {
        // The standard library sets SO_REUSEADDR: old connections do not stand in the way.
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        Self::on(listener, era, script)
    }

    /// The same on a listener that is there already.
    pub(crate) fn on(
        listener: TcpListener,
        era: Era,
        script: impl Fn(&Asked) -> Say + Send + Sync + 'static,
    ) -> Self {
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            era,
            script: Box::new(script),
            seen: Mutex::default(),
            accepted: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = serving.serve(listener) => {}
                }
            });
        });
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How it stands in the configuration.
    pub(crate) fn config(&self) -> Value {
        json!({"mcp": {"url": self.url(), "allow_private": true}})
    }

    /// Everything that came so far.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The calls that came so far.
    pub(crate) fn calls(&self) -> Vec<Asked> {
        let seen = self.seen().into_iter();
        seen.filter(|asked| asked.method() == "tools/call")
            .collect()
    }

    /// How many connections were made.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?}, {} requests",
            self.era,
            self.seen.lock().unwrap().len()
        )
    }
}

impl Shared {
    async fn serve(self: &Arc<Self>, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            self.accepted.fetch_add(1, Ordering::SeqCst);
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.connection(stream).await });
        }
    }

    async fn connection(&self, stream: TcpStream) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let mut stream = BufReader::new(stream);
        loop {
            let asked = read(&mut stream).await?;
            self.seen.lock().unwrap().push(asked.clone());
            match self.answer(&asked) {
                Say::Result(answer) | Say::Http(answer) => {
                    stream.write_all(answer.as_bytes()).await.ok()?;
                }
                Say::Hangup => return None,
                Say::Nothing => {
                    let _ = stream.read_u8().await;
                    return None;
                }
            }
        }
    }

    /// The whole HTTP answer in place of the result.
    fn answer(&self, asked: &Asked) -> Say {
        let id = &asked.message["id"];
        match (asked.http_method.as_str(), asked.method()) {
            ("DELETE", _) => return http("204 No Content", "", ""),
            ("GET", _) => return http("405 Method Not Allowed", "", ""),
            _ if id.is_null() => return http("202 Accepted", "", ""),
            _ => {}
        }
        let result = match (asked.method(), self.era) {
            ("server/discover", Era::Modern) => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#.to_owned(),
            ("server/discover", Era::Legacy) => {
                let error = r#"{"code":-32600,"message":"initialize first"}"#;
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
                return http("400 Bad Request", "", &body);
            }
            ("initialize", _) => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}"#.to_owned(),
            ("tools/list" | "tools/call", _) => match (self.script)(asked) {
                Say::Result(result) => result,
                other => return other,
            },
            _ => "{}".to_owned(),
        };
        let session = if asked.method() == "initialize" {
            "Mcp-Session-Id: scripted\r\n"
        } else {
            ""
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        http("200 OK", session, &body)
    }
}

fn http(status: &str, more: &str, body: &str) -> Say {
    Say::Http(format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
        body.len()
    ))
}

pub(super) async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let http_method = lines.next()?.split(' ').next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, value)| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let text = String::from_utf8(body).unwrap();
    Some(Asked {
        http_method,
        headers,
        message: serde_json::from_str(&text).unwrap_or_default(),
        text,
    })
}
