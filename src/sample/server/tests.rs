//! The sample spoken to as a client would.

use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines};

use super::super::{Kind, serve};
use super::*;

struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
}

fn client(kind: Kind) -> Client {
    let (input, theirs_in) = tokio::io::duplex(1 << 16);
    let (theirs_out, output) = tokio::io::duplex(1 << 16);
    tokio::spawn(serve(kind, theirs_in, theirs_out));
    Client {
        input,
        output: BufReader::new(output).lines(),
    }
}

impl Client {
    async fn write(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn read(&mut self) -> Value {
        let line = self.output.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, text: &str) -> Value {
        self.write(text).await;
        self.read().await
    }
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}"#;

#[tokio::test]
async fn a_legacy_client_shakes_hands_and_calls() {
    let mut client = client(Kind::AcmeCrm);
    let hello = client
        .ask(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#)
        .await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    client
        .write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let list = client
        .ask(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#)
        .await;
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 6);
    assert!(list["result"].get("resultType").is_none());
    let call = client
        .ask(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#)
        .await;
    assert_eq!(call["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn a_modern_client_needs_no_handshake() {
    let mut client = client(Kind::GlobexWarehouse);
    let found = client
        .ask(&format!(
            r#"{{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{{{META}}}}}"#
        ))
        .await;
    assert_eq!(found["result"]["resultType"], "complete");
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    let list = client
        .ask(&format!(
            r#"{{"jsonrpc":"2.0","id":"l","method":"tools/list","params":{{{META}}}}}"#
        ))
        .await;
    assert_eq!(list["result"]["cacheScope"], "private");
    let unknown = client
        .ask(r#"{"jsonrpc":"2.0","id":"u","method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1900-01-01"}}}"#)
        .await;
    assert_eq!(unknown["error"]["code"], -32022);
}

#[tokio::test(start_paused = true)]
async fn a_slow_report_tells_how_far_it_is_and_holds_up_nobody() {
    let mut client = client(Kind::AcmeCrm);
    client
        .write(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{META},"name":"slow_report","arguments":{{"quarter":"2026-Q1"}}}}}}"#
        ))
        .await;
    let quick = client
        .ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
        .await;
    assert_eq!(quick["id"], 2);
    for step in 1..=6 {
        let progress = client.read().await;
        assert_eq!(progress["params"]["progressToken"], "p");
        assert_eq!(progress["params"]["progress"], step);
    }
    let report = client.read().await;
    let text = report["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Report 2026-Q1"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_report_is_never_answered() {
    let mut client = client(Kind::AcmeCrm);
    client
        .write(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow_report","arguments":{"quarter":"2026-Q1"}}}"#)
        .await;
    client
        .write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let next = client
        .ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)
        .await;
    assert_eq!(next["id"], 2);
}

#[tokio::test]
async fn what_is_no_request_gets_an_error_and_the_server_goes_on() {
    let mut client = client(Kind::AcmeCrm);
    for (text, code) in [
        ("nonsense", -32700),
        ("[]", -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}"#,
            -32602,
        ),
    ] {
        assert_eq!(client.ask(text).await["error"]["code"], code, "{text}");
    }
    client.write("").await;
    assert!(
        client
            .ask(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#)
            .await["result"]
            .is_object()
    );
}
