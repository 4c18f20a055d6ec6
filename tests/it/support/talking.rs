//! An MCP server inside the test that holds conversations: it asks its client,
//! closes streams and takes them up again, in either era, as the test's script says.

use std::collections::HashMap;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use super::scripted::{Asked, read};
use super::wire::Checker;
use super::{Era, Value, json};

/// The running server. Gone when dropped, its connections with it.
pub(crate) struct Talking {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// One `tools/call`, or a word about a task, that is being answered.
pub(crate) struct Talk {
    shared: Arc<Shared>,
    stream: Option<TcpStream>,
    /// The request.
    pub(crate) asked: Asked,
    streams: bool,
    number: u64,
    events: u64,
}

type Told = Pin<Box<dyn Future<Output = ()> + Send>>;
type Script = Box<dyn Fn(Talk) -> Told + Send + Sync>;

struct Shared {
    era: Era,
    version: String,
    tools: Vec<Value>,
    script: Script,
    seen: Mutex<Vec<Asked>>,
    replies: Mutex<HashMap<String, Value>>,
    /// GET streams by session.
    gets: Mutex<HashMap<String, mpsc::UnboundedSender<String>>>,
    /// What was said on a stream after its connection was closed.
    kept: Mutex<HashMap<u64, Vec<String>>>,
    numbers: AtomicU64,
    checker: Checker,
}

impl Talking {
    /// A server of the newest revision of an era, with these tools.
    pub(crate) fn start<F>(
        era: Era,
        tools: &[&str],
        script: impl Fn(Talk) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let version = match era {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        };
        Self::speaking(version, tools, script)
    }

    /// A server of this revision.
    pub(crate) fn speaking<F>(
        version: &str,
        tools: &[&str],
        script: impl Fn(Talk) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let era = if version == "2026-07-28" {
            Era::Modern
        } else {
            Era::Legacy
        };
        let tool = |name: &&str| json!({"name": name, "description": "Does something.", "inputSchema": {"type": "object"}});
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            era,
            version: version.to_owned(),
            tools: tools.iter().map(tool).collect(),
            script: Box::new(move |talk| Box::pin(script(talk))),
            seen: Mutex::default(),
            replies: Mutex::default(),
            gets: Mutex::default(),
            kept: Mutex::default(),
            numbers: AtomicU64::new(1),
            checker: Checker::of(version),
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

    /// How it stands in the configuration.
    pub(crate) fn config(&self) -> Value {
        json!({"mcp": {"url": format!("http://{}/mcp", self.address), "allow_private": true}})
    }

    /// Everything that came so far.
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The messages with this method that came so far.
    pub(crate) fn seen_of(&self, method: &str) -> Vec<Asked> {
        let seen = self.seen().into_iter();
        seen.filter(|asked| asked.method() == method).collect()
    }

    /// What came that its revision's schema does not allow.
    pub(crate) fn faults(&self) -> Vec<String> {
        let client = |asked: &Asked| self.shared.checker.client(&asked.message);
        self.seen()
            .iter()
            .filter(|asked| asked.http_method == "POST" && asked.method() != "server/discover")
            .filter_map(|asked| client(asked).err())
            .collect()
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    async fn serve(self: &Arc<Self>, listener: TcpListener) {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.connection(stream).await });
        }
    }

    async fn connection(self: &Arc<Self>, stream: TcpStream) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let mut stream = BufReader::new(stream);
        loop {
            let asked = read(&mut stream).await?;
            self.seen.lock().unwrap().push(asked.clone());
            if asked.http_method == "GET" {
                return self.get(stream.into_inner(), &asked).await;
            }
            if asked.method() == "tools/call" || asked.method().starts_with("tasks/") {
                let talk = Talk {
                    shared: Arc::clone(self),
                    stream: Some(stream.into_inner()),
                    asked,
                    streams: false,
                    number: self.numbers.fetch_add(1, Ordering::SeqCst),
                    events: 0,
                };
                (self.script)(talk).await;
                return None;
            }
            let answer = self.answer(&asked);
            stream.write_all(answer.as_bytes()).await.ok()?;
        }
    }

    fn answer(&self, asked: &Asked) -> String {
        let id = &asked.message["id"];
        if asked.http_method == "DELETE" {
            return http("204 No Content", "", "");
        }
        if asked.method().is_empty() {
            let key = id.as_str().unwrap_or_default().to_owned();
            let message = asked.message.clone();
            self.replies.lock().unwrap().insert(key, message);
            return http("202 Accepted", "", "");
        }
        if id.is_null() {
            return http("202 Accepted", "", "");
        }
        let complete = |mut result: Value| {
            if self.era == Era::Modern {
                result["resultType"] = json!("complete");
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("private");
            }
            result
        };
        let capabilities = json!({"tools": {}, "logging": {}});
        let result = match (asked.method(), self.era) {
            ("server/discover", Era::Modern) => {
                complete(json!({"supportedVersions": [self.version], "capabilities": capabilities}))
            }
            ("server/discover", Era::Legacy) => {
                let error = json!({"code": -32600, "message": "initialize first"});
                let body = json!({"jsonrpc": "2.0", "id": id, "error": error});
                return http("400 Bad Request", "", &body.to_string());
            }
            ("initialize", _) => json!({
                "protocolVersion": self.version, "capabilities": capabilities,
                "serverInfo": {"name": "talking", "version": "1"},
            }),
            ("tools/list", _) => complete(json!({"tools": self.tools})),
            _ => json!({}),
        };
        let session = if asked.method() == "initialize" {
            let number = self.numbers.fetch_add(1, Ordering::SeqCst);
            format!("Mcp-Session-Id: s{number}\r\n")
        } else {
            String::new()
        };
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
        http("200 OK", &session, &body.to_string())
    }

    /// A session's own stream, or one that is taken up again.
    async fn get(&self, mut stream: TcpStream, asked: &Asked) -> Option<()> {
        stream.write_all(STREAM.as_bytes()).await.ok()?;
        if let Some(last) = asked.header("last-event-id") {
            let number: u64 = last.split('-').next()?.parse().ok()?;
            loop {
                let said = self
                    .kept
                    .lock()
                    .unwrap()
                    .get_mut(&number)
                    .map(std::mem::take);
                for event in said.unwrap_or_default() {
                    stream.write_all(event.as_bytes()).await.ok()?;
                    if event.contains("\"result\"") {
                        return None;
                    }
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let (sender, mut said) = mpsc::unbounded_channel();
        let session = asked.header("mcp-session-id").unwrap_or_default();
        self.gets.lock().unwrap().insert(session.to_owned(), sender);
        stream.write_all(b":\n\n").await.ok()?;
        loop {
            let mut byte = [0];
            tokio::select! {
                said = said.recv() => stream.write_all(said?.as_bytes()).await.ok()?,
                _ = stream.read(&mut byte) => return None,
            }
        }
    }
}

const STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

impl Talk {
    /// The tool that is called.
    pub(crate) fn tool(&self) -> String {
        self.asked.tool().to_owned()
    }

    /// What the request brought of this name.
    pub(crate) fn param(&self, name: &str) -> Value {
        self.asked.message["params"][name].clone()
    }

    /// Sends an event, or keeps it for who takes the stream up again.
    async fn say(&mut self, message: &Value) {
        self.events += 1;
        let event = format!("id: {}-{}\ndata: {message}\n\n", self.number, self.events);
        let Some(stream) = &mut self.stream else {
            let mut kept = self.shared.kept.lock().unwrap();
            kept.entry(self.number).or_default().push(event);
            return;
        };
        if !std::mem::replace(&mut self.streams, true) {
            let _ = stream.write_all(STREAM.as_bytes()).await;
        }
        let _ = stream.write_all(event.as_bytes()).await;
    }

    /// Says something on the way.
    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// Tells how far it is, under the caller's token.
    pub(crate) async fn progress(&mut self, progress: u32) {
        let token = self.param("_meta")["progressToken"].clone();
        let params = json!({"progressToken": token, "progress": progress});
        self.notify("notifications/progress", params).await;
    }

    /// Asks the client on the call's own stream and waits for the reply.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.question();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&message).await;
        self.reply(&id).await
    }

    /// Asks without waiting; gives the id.
    pub(crate) async fn ask_only(&mut self, method: &str, params: Value) -> String {
        let id = self.question();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&message).await;
        id
    }

    /// Asks the client on the session's own stream.
    pub(crate) async fn ask_elsewhere(&mut self, method: &str, params: Value) -> Value {
        let id = self.question();
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let session = self.asked.header("mcp-session-id").unwrap_or_default();
        {
            let gets = self.shared.gets.lock().unwrap();
            let stream = gets.get(session).expect("a GET stream");
            stream.send(format!("data: {message}\n\n")).unwrap();
        }
        self.reply(&id).await
    }

    fn question(&self) -> String {
        let number = self.shared.numbers.fetch_add(1, Ordering::SeqCst);
        format!("server-{number}")
    }

    /// The reply to a question.
    pub(crate) async fn reply(&self, id: &str) -> Value {
        loop {
            if let Some(reply) = self.shared.replies.lock().unwrap().remove(id) {
                return reply;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Closes the stream and says when it may be taken up again.
    pub(crate) async fn close(&mut self, retry: u32) {
        self.events += 1;
        let event = format!(
            "id: {}-{}\nretry: {retry}\ndata: \n\n",
            self.number, self.events
        );
        if let Some(mut stream) = self.stream.take() {
            if !std::mem::replace(&mut self.streams, true) {
                let _ = stream.write_all(STREAM.as_bytes()).await;
            }
            let _ = stream.write_all(event.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }

    /// Answers with this result.
    pub(crate) async fn result(mut self, mut result: Value) {
        if self.shared.era == Era::Modern && result["resultType"].is_null() {
            result["resultType"] = json!("complete");
        }
        let id = self.asked.message["id"].clone();
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.end("200 OK", &message).await;
    }

    /// Answers with a text.
    pub(crate) async fn text(self, text: &str) {
        self.result(json!({"content": [{"type": "text", "text": text}]}))
            .await;
    }

    /// Answers with an error.
    pub(crate) async fn error(mut self, status: &str, error: Value) {
        let id = self.asked.message["id"].clone();
        let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
        self.end(status, &message).await;
    }

    async fn end(&mut self, status: &str, message: &Value) {
        if self.streams || self.stream.is_none() {
            self.say(message).await;
        } else if let Some(stream) = &mut self.stream {
            let answer = http(status, "Connection: close\r\n", &message.to_string());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    }

    /// Waits until the client goes away, or says that it does not want the answer.
    pub(crate) async fn cancelled(&mut self) {
        let id = self.asked.message["id"].clone();
        loop {
            let seen = self.shared.seen.lock().unwrap().iter().any(|asked| {
                asked.method() == "notifications/cancelled"
                    && asked.message["params"]["requestId"] == id
            });
            if seen {
                return;
            }
            let mut byte = [0];
            let Some(stream) = &mut self.stream else {
                return;
            };
            let read = stream.read(&mut byte);
            if let Ok(Ok(0) | Err(_)) = tokio::time::timeout(Duration::from_millis(10), read).await
            {
                return;
            }
        }
    }
}

fn http(status: &str, more: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
        body.len()
    )
}
