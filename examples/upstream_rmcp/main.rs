//! An MCP server made with the official Rust SDK, for tests:
//! `cargo run --example upstream_rmcp -- --era legacy|modern|both --port 9302`, or
//! `--stdio` in place of a port. See `server.rs` for its tools.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test server may die of what it did not expect"
)]

mod server;

use rmcp::ServiceExt as _;
use server::{Era, Server};

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let mut rest = arguments.iter().skip_while(|argument| *argument != name);
        rest.nth(1).cloned()
    };
    let era = match value("--era").as_deref() {
        Some("legacy") => Era::Legacy,
        Some("modern") => Era::Modern,
        _ => Era::Both,
    };
    let server = Server::new(era);
    if arguments.iter().any(|argument| argument == "--stdio") {
        let running = server.serve(rmcp::transport::stdio()).await.unwrap();
        running.waiting().await.unwrap();
        return;
    }
    let port = value("--port").and_then(|text| text.parse().ok());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
    let listener = listener.unwrap();
    println!("listening on http://{}/mcp", listener.local_addr().unwrap());
    server.serve_http(listener).await;
}
