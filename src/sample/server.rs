//! MCP over standard streams for the samples: modern requests as they come, or a
//! legacy handshake; calls run side by side and can be cancelled.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::codec::{FramedRead, LinesCodec};

use super::book::{Answer, Book, said};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{
    Era, Json, JsonLimits, Message, Notification, Request, RequestId, RequestMeta, Version, codes,
    error_message, meta, result_message,
};

/// Longest message that is read.
const LONGEST: usize = 1 << 20;
/// The steps of the report, and how long each takes.
const STEPS: i64 = 6;
const STEP: Duration = Duration::from_millis(500);

/// Serves a book until the input ends.
pub(super) async fn serve<R, W>(book: Book, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (outbox, letters) = mpsc::channel(64);
    let mut server = Server {
        book: Arc::new(book),
        outbox,
        calls: JoinSet::new(),
        running: HashMap::new(),
    };
    let mut lines = FramedRead::new(input, LinesCodec::new_with_max_length(LONGEST));
    let reading = async move {
        loop {
            tokio::select! {
                line = lines.next() => match line {
                    Some(line) => server.line(line.ok()).await,
                    None => return,
                },
                Some(done) = server.calls.join_next() => {
                    if let Ok(key) = done {
                        server.running.remove(&key);
                    }
                }
            }
        }
    };
    // The outbox closes with the reading, calls that still run included.
    let ((), written) = tokio::join!(reading, write(output, letters));
    written
}

async fn write<W: AsyncWrite + Unpin>(
    mut output: W,
    mut letters: mpsc::Receiver<Json>,
) -> io::Result<()> {
    while let Some(letter) = letters.recv().await {
        output.write_all(letter.as_str().as_bytes()).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}

struct Server {
    book: Arc<Book>,
    outbox: mpsc::Sender<Json>,
    /// Calls that run; each gives its id's key when it is done.
    calls: JoinSet<String>,
    running: HashMap<String, AbortHandle>,
}

impl Server {
    async fn send(&self, message: Json) {
        let _ = self.outbox.send(message).await;
    }

    /// Takes a line; `None` is one that was too long or no text.
    async fn line(&mut self, line: Option<String>) {
        let json = line
            .as_ref()
            .and_then(|line| Json::parse(Bytes::from(line.clone()), &JsonLimits::CALLER).ok());
        let Some(json) = json else {
            if line.is_none_or(|line| !line.trim().is_empty()) {
                self.send(error_message(None, codes::PARSE_ERROR, "not JSON", None))
                    .await;
            }
            return;
        };
        match Message::read(&json) {
            Ok(Message::Request(request)) => self.request(request).await,
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(_)) => {}
            Ok(Message::Batch(_)) => {
                let fault = "send one message a line";
                self.send(error_message(None, codes::INVALID_REQUEST, fault, None))
                    .await;
            }
            Err(fault) => {
                let id = fault.id.as_ref();
                self.send(error_message(
                    id,
                    codes::INVALID_REQUEST,
                    fault.reason,
                    None,
                ))
                .await;
            }
        }
    }

    fn notification(&self, notification: &Notification) {
        if notification.method != "notifications/cancelled" {
            return;
        }
        let id = notification
            .params
            .as_ref()
            .and_then(|params| params.get("requestId"))
            .and_then(RequestId::new);
        if let Some(call) = id.and_then(|id| self.running.get(&id.key())) {
            call.abort();
        }
    }

    async fn request(&mut self, request: Request) {
        let meta = RequestMeta::of(request.params.as_ref());
        let id = &request.id;
        let era = match meta.protocol_version.as_deref() {
            None => Era::Legacy,
            Some(version) if version == Version::MODERN.as_str() => Era::Modern,
            Some(version) => {
                let data = unsupported(version);
                let code = codes::UNSUPPORTED_PROTOCOL_VERSION;
                self.send(error_message(
                    id.into(),
                    code,
                    "unsupported protocol version",
                    Some(&data),
                ))
                .await;
                return;
            }
        };
        let result = match (request.method.as_str(), era) {
            ("server/discover", Era::Modern) => self.discovered(),
            ("initialize", Era::Legacy) => self.initialised(request.params.as_ref()),
            ("ping", _) => Json::empty_object(),
            ("tools/list", _) => ObjectBuilder::new()
                .json("tools", self.book.tools())
                .build(),
            ("tools/call", _) => {
                self.start(request, meta, era);
                return;
            }
            _ => {
                let fault = "no such method";
                self.send(error_message(
                    id.into(),
                    codes::METHOD_NOT_FOUND,
                    fault,
                    None,
                ))
                .await;
                return;
            }
        };
        let cached = matches!(request.method.as_str(), "tools/list" | "server/discover");
        self.send(result_message(id, &finished(&result, era, cached)))
            .await;
    }

    fn server_info(&self) -> Json {
        ObjectBuilder::new()
            .text("name", self.book.name())
            .text("version", env!("CARGO_PKG_VERSION"))
            .build()
    }

    fn discovered(&self) -> Json {
        let meta = ObjectBuilder::new()
            .json(meta::SERVER_INFO, &self.server_info())
            .build();
        ObjectBuilder::new()
            .json("supportedVersions", &supported())
            .json("capabilities", &capabilities())
            .text("instructions", self.book.instructions())
            .json("_meta", &meta)
            .build()
    }

    fn initialised(&self, params: Option<&Json>) -> Json {
        let asked = params.and_then(|params| params.get("protocolVersion"));
        let version = asked
            .as_ref()
            .and_then(Json::string)
            .and_then(|asked| Version::parse(&asked))
            .filter(|version| version.era() == Era::Legacy)
            .unwrap_or(Version::NEWEST_LEGACY);
        ObjectBuilder::new()
            .text("protocolVersion", version.as_str())
            .json("capabilities", &capabilities())
            .json("serverInfo", &self.server_info())
            .text("instructions", self.book.instructions())
            .build()
    }

    /// Runs a call beside the others.
    fn start(&mut self, request: Request, meta: RequestMeta, era: Era) {
        let book = Arc::clone(&self.book);
        let outbox = self.outbox.clone();
        let key = request.id.key();
        let call = {
            let key = key.clone();
            async move {
                let message = call(&book, &outbox, &request, &meta, era).await;
                let _ = outbox.send(message).await;
                key
            }
        };
        self.running.insert(key, self.calls.spawn(call));
    }
}

async fn call(
    book: &Book,
    outbox: &mpsc::Sender<Json>,
    request: &Request,
    meta: &RequestMeta,
    era: Era,
) -> Json {
    let id = Some(&request.id);
    let part = |name| request.params.as_ref().and_then(|params| params.get(name));
    let name = part("name");
    let Some(name) = name.as_ref().and_then(Json::string) else {
        return error_message(id, codes::INVALID_PARAMS, "`name` must be a string", None);
    };
    let arguments = part("arguments").and_then(|arguments| arguments.to_value().ok());
    let result = match book.call(&name, &arguments.unwrap_or(Value::Null)) {
        Answer::Result(result) => result,
        Answer::UnknownTool => {
            let fault = format!("Unknown tool: {name}");
            return error_message(id, codes::INVALID_PARAMS, &fault, None);
        }
        Answer::Report { quarter } => {
            report(outbox, meta.progress_token.as_ref()).await;
            said(&format!(
                "Report {quarter}: revenue 1.24 million EUR, 312 orders, 4 returns. Prepared for \
                 maria.lindqvist@example.com."
            ))
        }
    };
    result_message(&request.id, &finished(&result, era, false))
}

/// Takes its time, and says so to who asked for it.
async fn report(outbox: &mpsc::Sender<Json>, token: Option<&Json>) {
    for step in 1..=STEPS {
        tokio::time::sleep(STEP).await;
        let Some(token) = token else { continue };
        let params = ObjectBuilder::new()
            .json(meta::PROGRESS_TOKEN, token)
            .integer("progress", step)
            .integer("total", STEPS)
            .text("message", &format!("Part {step} of {STEPS}"))
            .build();
        let message = ObjectBuilder::new()
            .text("jsonrpc", "2.0")
            .text("method", "notifications/progress")
            .json("params", &params)
            .build();
        let _ = outbox.send(message).await;
    }
}

/// A result with what the modern era adds to it.
fn finished(result: &Json, era: Era, cached: bool) -> Json {
    if era == Era::Legacy {
        return result.clone();
    }
    let mut out = ObjectBuilder::new().text("resultType", "complete");
    for (name, value) in result.members() {
        out = out.json(&name, &value);
    }
    if cached {
        out = out.integer("ttlMs", 60_000).text("cacheScope", "private");
    }
    out.build()
}

fn capabilities() -> Json {
    ObjectBuilder::new()
        .json("tools", &Json::empty_object())
        .build()
}

fn supported() -> Json {
    let versions = Version::ALL.map(|version| Json::from_text(version.as_str()));
    versions.iter().collect::<ArrayBuilder>().build()
}

fn unsupported(requested: &str) -> Json {
    ObjectBuilder::new()
        .json("supported", &supported())
        .text("requested", requested)
        .build()
}

#[cfg(test)]
mod tests;
