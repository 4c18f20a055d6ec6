//! The official Rust SDK as an app that has a person sign in: from no token to a tool
//! call, by its own OAuth code. Run by `tests/clients/sign_in.sh`, which sets the
//! environment: `MCP_URL`, `CLIENT_ID` and `CLIENT_SECRET` or `CLIENT_DOCUMENT` (or none
//! of them: it registers), `CALLBACK_PORT`, `BROWSER`, `TOOL`, `TOOL_ARGS`, `EXPECT`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test client takes its words from the environment and may die of surprises"
)]

use std::collections::HashMap;
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, ClientConfig};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthorizationManager, AuthorizationRequest, OAuthState};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;

/// A word of the environment; an empty one is none.
fn given(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|word| !word.is_empty())
}

#[tokio::main]
async fn main() {
    // The SDK's own client has no TLS library of its own.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let url = given("MCP_URL").unwrap();
    let place = || StreamableHttpClientTransportConfig::with_uri(url.clone());
    let plain = StreamableHttpClientTransport::with_client(reqwest::Client::default(), place());
    let Err(refused) = ClientConfig::default().serve(plain).await else {
        panic!("no sign-in was asked for");
    };
    let challenge = refused.auth_challenge().map(str::to_owned);
    let challenge = challenge.unwrap_or_else(|| panic!("no challenge: {refused}"));
    let manager = sign_in(&url, challenge).await;
    let signed_in = AuthClient::new(reqwest::Client::default(), manager);
    let transport = StreamableHttpClientTransport::with_client(signed_in, place());
    let client = ClientConfig::default().serve(transport).await.unwrap();
    let tools = client.peer().list_all_tools().await.unwrap();
    let tool = given("TOOL").unwrap();
    let arguments = serde_json::from_str(&given("TOOL_ARGS").unwrap()).unwrap();
    let call = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
    let result = client.peer().call_tool(call).await.unwrap();
    let told = serde_json::to_string(&result).unwrap();
    println!("{} tools, {tool} -> {told}", tools.len());
    let good = told.contains(&given("EXPECT").unwrap_or_default());
    std::process::exit(i32::from(!good));
}

/// Sends the person to the browser, and waits for what comes back.
async fn sign_in(url: &str, challenge: String) -> AuthorizationManager {
    let port = given("CALLBACK_PORT").map_or(0, |port| port.parse().unwrap());
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut request = AuthorizationRequest::new(format!("http://127.0.0.1:{port}/callback"))
        .with_client_name("Rust app")
        .with_application_type("native")
        .with_challenge(challenge);
    if let Some(id) = given("CLIENT_ID") {
        request = request.with_preregistered_client(id);
        if let Some(secret) = given("CLIENT_SECRET") {
            request = request.with_client_secret(secret);
        }
    } else if let Some(document) = given("CLIENT_DOCUMENT") {
        request = request.with_client_metadata_url(document);
    }
    let mut state = OAuthState::new(url, None).await.unwrap();
    state.start_authorization(request).await.unwrap();
    let to = state.get_authorization_url().await.unwrap();
    let browser = given("BROWSER").unwrap();
    let opened = tokio::process::Command::new(browser).arg(to).status();
    assert!(opened.await.unwrap().success(), "no browser");
    let returned = tokio::time::timeout(Duration::from_secs(30), returned(&listener)).await;
    let returned = returned.unwrap_or_else(|_| panic!("nobody came back"));
    let told = |name: &str| returned.get(name).map_or("", String::as_str);
    let issuer = returned.get("iss").map(String::as_str);
    let code = returned.get("code");
    let code = code.unwrap_or_else(|| panic!("{} {}", told("error"), told("error_description")));
    let finished = state.handle_callback_with_issuer(code, told("state"), issuer);
    finished.await.unwrap();
    state.into_authorization_manager().unwrap()
}

/// The parameters of the browser's return.
async fn returned(listener: &TcpListener) -> HashMap<String, String> {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut line = String::new();
        let mut reading = BufReader::new(&mut stream);
        reading.read_line(&mut line).await.unwrap();
        let target = line.split(' ').nth(1).unwrap_or_default();
        let answer =
            "HTTP/1.1 200 OK\r\ncontent-length: 15\r\nconnection: close\r\n\r\nBack at the app";
        stream.write_all(answer.as_bytes()).await.unwrap();
        if let Some(query) = target.strip_prefix("/callback?") {
            let pairs = form_urlencoded::parse(query.as_bytes());
            return pairs.into_owned().collect();
        }
    }
}
