//! An MCP server made with the official Rust SDK, in either era: what a real
//! server does, for tests.
//!
//! Tools: `echo` (text), `add` (a, b), `slow` (ms; progress and log messages on
//! the way), `fail` (isError), `structured` (city; output schema), `change_tools`
//! (adds or removes `extra` and says so), `big` (kib), `ask` (asks the client for
//! its roots, legacy only), `cancelled` (how many `slow` calls were), `headers`
//! (what HTTP headers came).
#![expect(deprecated, reason = "logging is spoken as long as a revision has it")]

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Which revisions the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25, with sessions.
    Legacy,
    /// 2026-07-28.
    Modern,
    /// All of them.
    Both,
}

/// The server; clones share what tests look at.
#[derive(Clone)]
pub(crate) struct Server {
    era: Era,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    extra: AtomicBool,
    changed: watch::Sender<u64>,
    peers: Mutex<Vec<Peer<RoleServer>>>,
    cancelled: AtomicU64,
}

impl Server {
    /// A server of that era.
    pub(crate) fn new(era: Era) -> Self {
        Self {
            era,
            shared: Arc::default(),
        }
    }

    /// Serves `/mcp` until the listener fails.
    pub(crate) async fn serve_http(self, listener: TcpListener) {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(self.era != Era::Modern)
            .with_sse_keep_alive(Some(Duration::from_millis(200)));
        let service = StreamableHttpService::new(
            move || Ok(self.clone()),
            Arc::new(LocalSessionManager::default()),
            config,
        );
        let pages = axum::Router::new().nest_service("/mcp", service);
        axum::serve(listener, pages).await.unwrap();
    }

    async fn change_tools(&self) -> String {
        let had = self.shared.extra.fetch_xor(true, Ordering::Relaxed);
        self.shared.changed.send_modify(|count| *count += 1);
        let peers = self.shared.peers.lock().unwrap().clone();
        for peer in peers {
            let _ = peer.notify_tool_list_changed().await;
        }
        format!("{} `extra`", if had { "removed" } else { "added" })
    }

    async fn slow(&self, millis: u64, context: &RequestContext<RoleServer>) -> String {
        let steps = 4_u32;
        for step in 0..steps {
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, f64::from(step + 1))
                    .with_total(f64::from(steps))
                    .with_message(format!("step {}", step + 1));
                let _ = context.peer.notify_progress(progress).await;
            }
            let wanted = self.era == Era::Legacy || context.meta.log_level().is_some();
            if wanted {
                let said = json!({ "step": step + 1 });
                let message = LoggingMessageNotificationParam::new(LoggingLevel::Info, said);
                let _ = context.peer.notify_logging_message(message).await;
            }
            tokio::select! {
                () = context.ct.cancelled() => {
                    self.shared.cancelled.fetch_add(1, Ordering::Relaxed);
                    return "cancelled".into();
                }
                () = tokio::time::sleep(Duration::from_millis(millis / u64::from(steps))) => {}
            }
        }
        "done".into()
    }
}

impl ServerHandler for Server {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(match self.era {
            Era::Legacy => &[
                ProtocolVersion::V_2025_03_26,
                ProtocolVersion::V_2025_06_18,
                ProtocolVersion::V_2025_11_25,
            ],
            Era::Modern => &[ProtocolVersion::V_2026_07_28],
            Era::Both => ProtocolVersion::KNOWN_VERSIONS,
        })
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.shared.peers.lock().unwrap().push(context.peer);
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.shared.changed.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                Ok(()) = changed.changed() => {
                    let _ = context.sink().notify_tool_list_changed().await;
                }
            }
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = definitions();
        if self.shared.extra.load(Ordering::Relaxed) {
            tools.push(definition("extra", "Comes and goes.", &json!({})));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
        let millis = arguments["ms"].as_u64().unwrap_or_default();
        let text = match &*request.name {
            "echo" => arguments["text"].as_str().unwrap_or_default().to_owned(),
            "add" => (number("a") + number("b")).to_string(),
            "slow" => self.slow(millis, &context).await,
            "fail" => {
                let why = vec![ContentBlock::text("the disk is full")];
                return Ok(CallToolResult::error(why).into());
            }
            "structured" => {
                let weather = json!({ "city": arguments["city"], "celsius": 21.5 });
                return Ok(CallToolResult::structured(weather).into());
            }
            "change_tools" => self.change_tools().await,
            "big" => "x".repeat(
                1024 * usize::try_from(arguments["kib"].as_u64().unwrap_or(1)).unwrap_or(1),
            ),
            "ask" => match context.peer.list_roots().await {
                Ok(roots) => format!("{} roots", roots.roots.len()),
                Err(fault) => format!("no roots: {fault}"),
            },
            "headers" => match context.extensions.get::<Parts>() {
                Some(parts) => format!("{:?}", parts.headers),
                None => "none".into(),
            },
            "cancelled" => self.shared.cancelled.load(Ordering::Relaxed).to_string(),
            "extra" => "extra".into(),
            name => {
                return Err(ErrorData::invalid_params(
                    format!("Unknown tool: {name}"),
                    None,
                ));
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn definition(name: &'static str, description: &'static str, properties: &Value) -> Tool {
    let schema = json!({ "type": "object", "properties": properties });
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, description, Arc::new(schema))
}

fn definitions() -> Vec<Tool> {
    let number = json!({ "type": "number", "description": "A number." });
    let count = json!({ "type": "integer", "minimum": 0, "description": "How much." });
    let text = json!({ "type": "string", "description": "A text." });
    let weather = json!({
        "type": "object",
        "properties": { "city": text, "celsius": number },
        "required": ["city", "celsius"],
    });
    let weather = Arc::new(weather.as_object().cloned().unwrap_or_default());
    vec![
        definition(
            "echo",
            "Answers with the text it was given.",
            &json!({ "text": text }),
        ),
        definition(
            "add",
            "Adds two numbers.",
            &json!({ "a": number, "b": number }),
        ),
        definition(
            "slow",
            "Takes its time and tells how far it is.",
            &json!({ "ms": count }),
        ),
        definition("fail", "Always fails.", &json!({})),
        definition(
            "structured",
            "Tells the weather of a city.",
            &json!({ "city": text }),
        )
        .with_raw_output_schema(weather),
        definition(
            "change_tools",
            "Adds or removes the tool `extra`.",
            &json!({}),
        ),
        definition(
            "big",
            "Answers with that many KiB.",
            &json!({ "kib": count }),
        ),
        definition("ask", "Asks the client for its roots.", &json!({})),
        definition(
            "cancelled",
            "Counts calls of `slow` that were cancelled.",
            &json!({}),
        ),
        definition("headers", "Tells the HTTP headers of the call.", &json!({})),
    ]
}
