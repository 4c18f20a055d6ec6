//! An MCP server that misbehaves on purpose, over plain TCP.
//!
//! | path | what |
//! |---|---|
//! | `/modern` | a modern server; the name of the tool that is called says how it misbehaves |
//! | `/legacy` | the same with sessions |
//! | `/turns` | legacy until the tool `turn` is called, modern until it is called again |
//! | `/lost` | a legacy server that forgets each session at once (404) |
//! | `/all/<mode>` | misbehaves on every request, the first one included |
//! | `/seen` | what it received, as JSON: method, path, headers, body, in order |

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// The tools of `/modern` and `/legacy`, each a way to misbehave.
pub(crate) const MODES: [&str; 32] = [
    "echo",
    "hang",
    "die",
    "die_sse",
    "garbage",
    "not_rpc",
    "wrong_id",
    "endless_json",
    "endless_sse",
    "endless_line",
    "announced_huge",
    "split_emoji",
    "line_ends",
    "bad_utf8",
    "lone_surrogate",
    "unauthorized",
    "redirect",
    "html_500",
    "rate_limited",
    "slow_headers",
    "rpc_error",
    "tool_error",
    "asks",
    "resume",
    "nothing",
    "too_deep",
    "mismatch_once",
    "batch",
    "connections",
    "aside",
    "turn",
    "slow",
];

/// What all connections share.
#[derive(Clone, Default)]
pub(crate) struct Hostile {
    seen: Arc<Mutex<Vec<Value>>>,
    replies: Arc<Mutex<Vec<Value>>>,
    sessions: Arc<AtomicU64>,
    mismatches: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    asides: Arc<Mutex<Vec<Value>>>,
    turned: Arc<AtomicBool>,
}

struct Asked {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl Hostile {
    /// Serves until the listener fails.
    pub(crate) async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let server = self.clone();
            self.connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move { server.connection(stream).await });
        }
    }

    /// What was received so far.
    pub(crate) fn seen(&self) -> Vec<Value> {
        self.seen.lock().unwrap().clone()
    }

    async fn connection(&self, stream: TcpStream) -> Option<()> {
        let _ = stream.set_nodelay(true);
        let mut stream = BufReader::new(stream);
        loop {
            let asked = read_request(&mut stream).await?;
            if asked.path == "/seen" {
                let body = Value::from(self.seen()).to_string();
                answer(&mut stream, 200, "application/json", &[], body.as_bytes()).await?;
                continue;
            }
            let headers: serde_json::Map<String, Value> = asked
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
                .collect();
            self.seen.lock().unwrap().push(json!({
                "method": asked.method, "path": asked.path, "headers": headers,
                "body": String::from_utf8_lossy(&asked.body),
            }));
            self.respond(&mut stream, &asked).await?;
        }
    }

    async fn respond(&self, stream: &mut BufReader<TcpStream>, asked: &Asked) -> Option<()> {
        let message = asked.json();
        let turned = self.turned.load(Ordering::Relaxed);
        let legacy = match asked.path.as_str() {
            "/legacy" | "/lost" => true,
            "/turns" => !turned,
            _ => false,
        };
        if let Some(mode) = asked.path.strip_prefix("/all/") {
            return self.misbehave(stream, asked, mode, &message).await;
        }
        if !legacy && !matches!(asked.path.as_str(), "/modern" | "/turns") {
            return answer(stream, 404, "text/plain", &[], b"no such page").await;
        }
        match asked.method.as_str() {
            "DELETE" => return answer(stream, 204, "text/plain", &[], b"").await,
            "GET" if legacy && asked.header("last-event-id") == Some("resume-1") => {
                return self.resumed(stream).await;
            }
            "GET" if legacy => return self.say_asides(stream).await,
            "GET" => return answer(stream, 405, "text/plain", &[], b"").await,
            _ => {}
        }
        if message.get("method").is_none() {
            self.replies.lock().unwrap().push(message);
            return answer(stream, 202, "text/plain", &[], b"").await;
        }
        if message.get("id").is_none() {
            return answer(stream, 202, "text/plain", &[], b"").await;
        }
        if legacy {
            return self.respond_legacy(stream, asked, &message).await;
        }
        if asked.header("mcp-protocol-version") != Some("2026-07-28") {
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "error":
                {"code": -32020, "message": "Header mismatch"}});
            let body = body.to_string();
            return answer(stream, 400, "application/json", &[], body.as_bytes()).await;
        }
        if message["method"] == "server/discover" {
            let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "logging": {}}, "ttlMs": 0, "cacheScope": "private"});
            return result_of(stream, &message, result).await;
        }
        self.work(stream, asked, &message).await
    }

    async fn respond_legacy(
        &self,
        stream: &mut BufReader<TcpStream>,
        asked: &Asked,
        message: &Value,
    ) -> Option<()> {
        if message["method"] == "initialize" {
            let id = self.sessions.fetch_add(1, Ordering::Relaxed);
            let session = format!("session-{id}");
            let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "hostile", "version": "1"}}});
            let headers = [("Mcp-Session-Id", session.as_str())];
            let body = body.to_string();
            return answer(stream, 200, "application/json", &headers, body.as_bytes()).await;
        }
        if asked.header("mcp-session-id").is_none() {
            let body = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"not initialized"}}"#;
            return answer(stream, 400, "application/json", &[], body).await;
        }
        if asked.path == "/lost" {
            return answer(stream, 404, "text/plain", &[], b"session not found").await;
        }
        self.work(stream, asked, message).await
    }

    async fn work(
        &self,
        stream: &mut BufReader<TcpStream>,
        asked: &Asked,
        message: &Value,
    ) -> Option<()> {
        match message["method"].as_str()? {
            "tools/list" => {
                let tools: Vec<Value> = MODES
                    .iter()
                    .map(|mode| {
                        json!({"name": mode, "description": format!("Misbehaves: {mode}."),
                        "inputSchema": {"type": "object"}})
                    })
                    .collect();
                let result = json!({"resultType": "complete", "tools": tools, "ttlMs": 0,
                    "cacheScope": "private"});
                result_of(stream, message, result).await
            }
            "tools/call" => {
                let mode = message["params"]["name"].as_str()?.to_owned();
                self.misbehave(stream, asked, &mode, message).await
            }
            _ => result_of(stream, message, json!({})).await,
        }
    }

    async fn misbehave(
        &self,
        stream: &mut BufReader<TcpStream>,
        asked: &Asked,
        mode: &str,
        message: &Value,
    ) -> Option<()> {
        let id = &message["id"];
        match mode {
            "hang" => self.hang(stream, mode).await,
            "slow" => {
                let millis = message["params"]["arguments"]["ms"].as_u64();
                tokio::time::sleep(Duration::from_millis(millis.unwrap_or(1000))).await;
                misbehave_whole(stream, asked, mode, id).await
            }
            "die" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"jsonrpc\":";
                stream.write_all(head.as_bytes()).await.ok()?;
                None
            }
            "slow_headers" => {
                for byte in b"HTTP/1.1 200 OK\r\nX-Slow: "
                    .iter()
                    .chain([b'x'; 600].iter())
                {
                    stream.write_all(&[*byte]).await.ok()?;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                None
            }
            "announced_huge" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n{";
                stream.write_all(head.as_bytes()).await.ok()?;
                self.hang(stream, mode).await
            }
            "endless_json" => endless(stream, "application/json", &endless_head(id), "x").await,
            "endless_line" => endless(stream, "text/event-stream", "data: ", "x").await,
            "endless_sse" => {
                let token = &message["params"]["_meta"]["progressToken"];
                let event = format!("data: {}\n\n", progress(token));
                endless(stream, "text/event-stream", "", &event).await
            }
            "mismatch_once" if self.mismatches.fetch_add(1, Ordering::Relaxed) == 0 => {
                let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32020, "message": "Header mismatch"}});
                answer(
                    stream,
                    400,
                    "application/json",
                    &[],
                    body.to_string().as_bytes(),
                )
                .await
            }
            "turn" | "aside" | "connections" => {
                self.misbehave_with_memory(stream, asked, mode, id).await
            }
            "die_sse" | "split_emoji" | "line_ends" | "asks" | "resume" => {
                self.misbehave_in_stream(stream, mode, message).await
            }
            _ => misbehave_whole(stream, asked, mode, id).await,
        }
    }

    async fn misbehave_with_memory(
        &self,
        stream: &mut BufReader<TcpStream>,
        asked: &Asked,
        mode: &str,
        id: &Value,
    ) -> Option<()> {
        let mut text = mode.to_owned();
        match mode {
            "turn" => {
                self.turned.fetch_xor(true, Ordering::Relaxed);
            }
            "aside" => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let said = json!({"jsonrpc": "2.0", "method": "notifications/message",
                    "params": {"level": "info", "data": String::from_utf8_lossy(&asked.body)}});
                self.asides.lock().unwrap().push(said);
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            _ => text = self.connections.load(Ordering::Relaxed).to_string(),
        }
        let body = text_result(id, &text);
        answer(stream, 200, "application/json", &[], body.as_bytes()).await
    }

    async fn misbehave_in_stream(
        &self,
        stream: &mut BufReader<TcpStream>,
        mode: &str,
        message: &Value,
    ) -> Option<()> {
        let id = &message["id"];
        begin_chunked(stream, "text/event-stream").await?;
        match mode {
            "die_sse" => {
                let event = format!(
                    "data: {}\n\n",
                    progress(&message["params"]["_meta"]["progressToken"])
                );
                chunk(stream, event.as_bytes()).await?;
                return None;
            }
            "split_emoji" => {
                let event = format!("data: {}\n\n", text_result(id, "done ✅ fine"));
                let cut = event.find('✅')? + 1;
                chunk(stream, &event.as_bytes()[..cut]).await?;
                tokio::time::sleep(Duration::from_millis(30)).await;
                chunk(stream, &event.as_bytes()[cut..]).await?;
            }
            "line_ends" => {
                let text =
                    text_result(id, "a\u{2028}b\u{85}c").replace(",\"id\"", "\r\ndata:,\"id\"");
                let head = "\u{feff}: hello\r\rid: 1\rdata:\n\nevent: message\rdata: ";
                chunk(stream, format!("{head}{text}\r").as_bytes()).await?;
                tokio::time::sleep(Duration::from_millis(30)).await;
                chunk(stream, b"\n\r\n").await?;
            }
            "asks" => {
                self.replies.lock().unwrap().clear();
                for (number, method) in [(1, "ping"), (2, "elicitation/create")] {
                    let ask = json!({"jsonrpc": "2.0", "id": format!("s{number}"), "method": method, "params": {}});
                    chunk(stream, format!("data: {ask}\n\n").as_bytes()).await?;
                }
                while self.replies.lock().unwrap().len() < 2 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                let replies = Value::from(self.replies.lock().unwrap().clone()).to_string();
                chunk(
                    stream,
                    format!("data: {}\n\n", text_result(id, &replies)).as_bytes(),
                )
                .await?;
            }
            _ => {
                self.replies.lock().unwrap().push(id.clone());
                chunk(stream, b"id: resume-1\nretry: 20\ndata:\n\n").await?;
            }
        }
        chunk(stream, b"").await
    }

    /// The stream of a session, which carries what `aside` says.
    async fn say_asides(&self, stream: &mut BufReader<TcpStream>) -> Option<()> {
        begin_chunked(stream, "text/event-stream").await?;
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let said = self.asides.lock().unwrap().pop();
            let text = said.map_or(": nothing\n\n".into(), |said| format!("data: {said}\n\n"));
            chunk(stream, text.as_bytes()).await?;
        }
    }

    async fn resumed(&self, stream: &mut BufReader<TcpStream>) -> Option<()> {
        let id = self.replies.lock().unwrap().pop()?;
        begin_chunked(stream, "text/event-stream").await?;
        let event = format!("id: resume-2\ndata: {}\n\n", text_result(&id, "resumed"));
        chunk(stream, event.as_bytes()).await?;
        chunk(stream, b"").await
    }

    /// Says nothing until the client goes away, and notes that it did.
    async fn hang(&self, stream: &mut BufReader<TcpStream>, mode: &str) -> Option<()> {
        let mut byte = [0];
        let _ = stream.read(&mut byte).await;
        self.seen.lock().unwrap().push(json!({"closed": mode}));
        None
    }
}

async fn misbehave_whole(
    stream: &mut BufReader<TcpStream>,
    asked: &Asked,
    mode: &str,
    id: &Value,
) -> Option<()> {
    if let Some((status, media, headers, body)) = refusal(mode) {
        return answer(stream, status, media, headers, body.as_bytes()).await;
    }
    let body = body(mode, id).unwrap_or_else(|| {
        let echo = text_result(id, &String::from_utf8_lossy(&asked.body));
        echo.into_bytes()
    });
    answer(stream, 200, "application/json", &[], &body).await
}

type Whole = (
    u16,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

fn refusal(mode: &str) -> Option<Whole> {
    Some(match mode {
        "nothing" => (202, "application/json", &[], ""),
        "unauthorized" => (
            401,
            "text/plain",
            &[("WWW-Authenticate", "Bearer realm=\"inner\"")],
            "who are you",
        ),
        "redirect" => (
            302,
            "text/plain",
            &[("Location", "http://127.0.0.1:9/elsewhere")],
            "",
        ),
        "html_500" => (
            500,
            "text/html",
            &[],
            "<html><h1>Traceback</h1>db-07.inner.example.com:5432 refused</html>",
        ),
        "rate_limited" => (
            429,
            "application/json",
            &[("Retry-After", "30")],
            "{\"error\":\"slow down\"}",
        ),
        _ => return None,
    })
}

fn body(mode: &str, id: &Value) -> Option<Vec<u8>> {
    let text = match mode {
        "garbage" => "<<< not json >>>".into(),
        "not_rpc" => "{\"hello\":\"world\"}".into(),
        "wrong_id" => text_result(&json!(987_654_321), "x"),
        "batch" => format!("[{}]", text_result(id, "batched")),
        "lone_surrogate" => text_result(id, "a#b").replace('#', "\\ud800"),
        "too_deep" => {
            let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
            text_result(id, "x").replace("\"x\"", &deep)
        }
        "rpc_error" => json!({"jsonrpc": "2.0", "id": id, "error":
            {"code": -32602, "message": "Unknown tool: x", "data": {"a": 1}}})
        .to_string(),
        "tool_error" => json!({"jsonrpc": "2.0", "id": id, "result":
            {"content": [{"type": "text", "text": "no such user"}], "isError": true}})
        .to_string(),
        "bad_utf8" => {
            let bytes = text_result(id, "caf#").into_bytes();
            let latin = |byte| if byte == b'#' { 0xe9 } else { byte };
            return Some(bytes.into_iter().map(latin).collect());
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

fn text_result(id: &Value, text: &str) -> String {
    let result = json!({"content": [{"type": "text", "text": text}]});
    // `id` last, so that a reader that stops at the result has not seen it.
    json!({"jsonrpc": "2.0", "result": result, "id": id}).to_string()
}

fn endless_head(id: &Value) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\""
    )
}

fn progress(token: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
}

async fn result_of(
    stream: &mut BufReader<TcpStream>,
    message: &Value,
    result: Value,
) -> Option<()> {
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    answer(stream, 200, "application/json", &[], body.as_bytes()).await
}

async fn endless(
    stream: &mut BufReader<TcpStream>,
    media: &str,
    head: &str,
    unit: &str,
) -> Option<()> {
    begin_chunked(stream, media).await?;
    if !head.is_empty() {
        chunk(stream, head.as_bytes()).await?;
    }
    let block = unit.repeat((64 << 10) / unit.len());
    loop {
        chunk(stream, block.as_bytes()).await?;
    }
}

async fn begin_chunked(stream: &mut BufReader<TcpStream>, media: &str) -> Option<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nTransfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()
}

/// Writes one chunk; an empty one ends the body.
async fn chunk(stream: &mut BufReader<TcpStream>, bytes: &[u8]) -> Option<()> {
    let head = format!("{:x}\r\n", bytes.len());
    stream
        .write_all(&[head.as_bytes(), bytes, b"\r\n"].concat())
        .await
        .ok()
}

async fn answer(
    stream: &mut BufReader<TcpStream>,
    status: u16,
    media: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<()> {
    let mut head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {media}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    stream
        .write_all(&[head.as_bytes(), body].concat())
        .await
        .ok()
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
        if head.len() > 64 << 10 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked {
        method,
        path,
        headers,
        body,
    })
}
