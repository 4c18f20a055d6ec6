//! `toolgate call`: a small MCP client for scripts and smoke tests. It speaks the
//! modern era.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use clap::Args;

use crate::config;
use crate::outgoing::{HttpAnswer, Outgoing, Reach};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, JsonLimits, Version, meta};

/// `toolgate call`
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The tool. Without one the tools are listed.
    tool: Option<String>,
    /// The tool's arguments, a JSON object.
    #[arg(long, default_value = "{}")]
    args: String,
    /// The MCP endpoint.
    #[arg(long, default_value = "http://127.0.0.1:8080/mcp")]
    url: String,
    /// The access token. Visible in the list of processes: prefer --token-file.
    #[arg(long, conflicts_with = "token_file")]
    token: Option<String>,
    /// File with the access token; `-` is standard input.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Print the whole JSON-RPC answer.
    #[arg(long)]
    json: bool,
}

/// Longest answer that is read.
const LIMIT: usize = 32 << 20;
/// How long to wait for it.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let token = token(&options)?;
    let message = match &options.tool {
        Some(tool) => {
            let arguments = Json::parse(Bytes::from(options.args.clone()), &JsonLimits::CALLER)
                .context("--args is not valid JSON")?;
            if !arguments.is_object() {
                bail!("--args must be a JSON object such as '{{\"query\": \"Ada\"}}'");
            }
            exchange(
                &options.url,
                &token,
                "tools/call",
                Some(tool),
                ObjectBuilder::new()
                    .text("name", tool)
                    .json("arguments", &arguments),
            )
            .await?
        }
        None => everything_listed(&options.url, &token).await?,
    };
    if options.json {
        println!("{}", message.as_str());
    } else {
        print_plainly(&message);
    }
    let failed = message.get("error").is_some()
        || message
            .get("result")
            .and_then(|result| result.get("isError")?.boolean())
            == Some(true);
    Ok(if failed {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    })
}

fn token(options: &Options) -> anyhow::Result<String> {
    let text = match (&options.token, &options.token_file) {
        (Some(token), _) => token.clone(),
        (None, Some(file)) if file.as_os_str() == "-" => std::io::read_to_string(std::io::stdin())?,
        (None, Some(file)) => std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?,
        (None, None) => bail!(
            "give --token or --token-file; with the quickstart data: toolgate token --user alice@acme.test > token"
        ),
    };
    Ok(text.trim().to_owned())
}

/// All pages of `tools/list`, as one answer.
async fn everything_listed(url: &str, token: &str) -> anyhow::Result<Json> {
    let mut tools = ArrayBuilder::new();
    let mut cursor: Option<Json> = None;
    loop {
        let params = ObjectBuilder::new().maybe("cursor", cursor.as_ref());
        let message = exchange(url, token, "tools/list", None, params).await?;
        let Some(result) = message.get("result") else {
            return Ok(message);
        };
        for tool in result.get("tools").iter().flat_map(Json::elements) {
            tools.push(&tool);
        }
        cursor = result.get("nextCursor").filter(|cursor| !cursor.is_null());
        if cursor.is_none() {
            return Ok(message.with_member("result", &result.with_member("tools", &tools.build())));
        }
    }
}

/// One request and the answer to it.
async fn exchange(
    url: &str,
    token: &str,
    method: &str,
    name: Option<&str>,
    params: ObjectBuilder,
) -> anyhow::Result<Json> {
    let client_info = ObjectBuilder::new()
        .text("name", "toolgate-call")
        .text("version", env!("CARGO_PKG_VERSION"))
        .build();
    let meta = ObjectBuilder::new()
        .text(meta::PROTOCOL_VERSION, Version::MODERN.as_str())
        .json(meta::CLIENT_INFO, &client_info)
        .json(meta::CLIENT_CAPABILITIES, &Json::empty_object())
        .build();
    let body = ObjectBuilder::new()
        .text("jsonrpc", "2.0")
        .integer("id", 1)
        .text("method", method)
        .json("params", &params.json("_meta", &meta).build())
        .build();
    let mut headers = vec![
        ("authorization", format!("Bearer {token}")),
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("mcp-protocol-version", Version::MODERN.as_str().to_owned()),
        ("mcp-method", method.to_owned()),
    ];
    if let Some(name) = name {
        headers.push((
            "mcp-name",
            crate::upstream::encode_header_value(name).into_owned(),
        ));
    }
    let outgoing = Outgoing::new(&config::Outgoing::default())?;
    let client = outgoing.client(Reach::Private, Duration::from_secs(5));
    let answer = tokio::time::timeout(PATIENCE, client.post(url, headers, body.into_bytes()))
        .await
        .context("no answer in time")??;
    read(answer).await
}

/// The JSON-RPC response in a JSON or event-stream answer.
async fn read(answer: HttpAnswer) -> anyhow::Result<Json> {
    let status = answer.status;
    let streamed = answer
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    let body = tokio::time::timeout(PATIENCE, answer.body(LIMIT))
        .await
        .context("the answer did not end in time")??;
    let texts: Vec<Bytes> = if streamed {
        let text = String::from_utf8_lossy(&body).into_owned();
        text.lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|data| Bytes::from(data.trim_start().to_owned()))
            .collect()
    } else {
        vec![body]
    };
    let messages = texts
        .into_iter()
        .filter_map(|text| Json::parse(text, &JsonLimits::UPSTREAM).ok());
    // The body of a refused sign-in has an `error` too, and is no response.
    let mut responses = messages.filter(|message| {
        message.get("jsonrpc").is_some()
            && (message.get("result").is_some() || message.get("error").is_some())
    });
    responses.next_back().ok_or_else(|| {
        anyhow!(
            "HTTP status {status} and no JSON-RPC response in the body{}",
            advice(status)
        )
    })
}

fn advice(status: u16) -> &'static str {
    match status {
        401 => "; the token is missing, expired, or for another endpoint",
        403 => "; this host or origin is not allowed",
        404 => "; the path of an MCP endpoint is /mcp or /t/{tenant}/mcp",
        _ => "",
    }
}

fn print_plainly(message: &Json) {
    if let Some(error) = message.get("error") {
        let words = error
            .get("message")
            .and_then(|words| words.string().map(String::from))
            .unwrap_or_default();
        eprintln!(
            "error {}: {words}",
            error
                .get("code")
                .map(|code| code.as_str().to_owned())
                .unwrap_or_default()
        );
        return;
    }
    let Some(result) = message.get("result") else {
        return;
    };
    for tool in result.get("tools").iter().flat_map(Json::elements) {
        let text = |key: &str| {
            tool.get(key)
                .and_then(|value| value.string().map(String::from))
                .unwrap_or_default()
        };
        println!("{}\n    {}", text("name"), text("description"));
    }
    for block in result.get("content").iter().flat_map(Json::elements) {
        match block
            .get("text")
            .and_then(|text| text.string().map(String::from))
        {
            Some(text) => println!("{text}"),
            None => println!("{}", block.as_str()),
        }
    }
}
