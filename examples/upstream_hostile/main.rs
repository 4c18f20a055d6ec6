//! An MCP server that misbehaves on purpose, for tests:
//! `cargo run --example upstream_hostile -- --port 9301`. See `server.rs` for its paths.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test server may die of what it did not expect"
)]

mod server;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--port");
    let port = arguments.nth(1).and_then(|text| text.parse().ok());
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
    let listener = listener.unwrap();
    println!("listening on {}", listener.local_addr().unwrap());
    server::Hostile::default().serve(listener).await;
}
