//! A scripted server on the other end of in-memory streams.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines as TokioLines};

use tokio::time::Instant;

use super::super::patience::Patience;
use super::*;
use crate::protocol::{Untrusted, UpstreamEvent, Version};

struct Peer {
    input: TokioLines<BufReader<DuplexStream>>,
    output: DuplexStream,
}

impl Peer {
    async fn read(&mut self) -> Json {
        let line = self.input.next_line().await.unwrap().unwrap();
        Json::parse(Bytes::from(line), &JsonLimits::CALLER).unwrap()
    }

    async fn write(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
        self.output.write_all(b"\n").await.unwrap();
    }
}

fn legs() -> Arc<Legs> {
    Arc::new(Legs {
        upstream: UpstreamId::from("peer"),
        transport: crate::upstream::leg::Transport::Stdio,
        address: None,
        metrics: Arc::new(crate::telemetry::metrics::Metrics::new(0)),
    })
}

fn stage(limit: usize, version: Version) -> (Arc<Connection>, Peer) {
    let (ours_in, theirs_out) = tokio::io::duplex(1 << 16);
    let (theirs_in, ours_out) = tokio::io::duplex(1 << 16);
    let connection = Connection::open(
        UpstreamId::from("peer"),
        ours_in,
        ours_out,
        limit,
        (Changes::new(), legs()),
    );
    connection.greeted(Profile {
        version,
        abilities: crate::upstream::Abilities::default(),
        logs: true,
        sessionless: false,
    });
    let peer = Peer {
        input: BufReader::new(theirs_in).lines(),
        output: theirs_out,
    };
    (connection, peer)
}

type Events = mpsc::Receiver<Untrusted<UpstreamEvent>>;

fn start(
    connection: &Arc<Connection>,
    caller: u8,
    logs: bool,
) -> (tokio::task::JoinHandle<Result<Json, UpstreamError>>, Events) {
    let (sender, events) = mpsc::channel(4);
    let connection = Arc::clone(connection);
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut request = UpstreamRequest::own("tools/call", Json::empty_object(), deadline);
    request.caller = CallerKey([caller; 32]);
    request.progress = true;
    request.log_level = logs.then_some(LogLevel::Info);
    let line = Line::new(sender, Patience::new(deadline, None));
    let call = tokio::spawn(async move { connection.call(&request, &line).await });
    (call, events)
}

fn id(message: &Json) -> i64 {
    message.get("id").unwrap().integer().unwrap()
}

const MODERN: Version = Version::V2026_07_28;

#[tokio::test]
async fn answers_find_their_callers_in_any_order() {
    let (connection, mut peer) = stage(1 << 20, MODERN);
    let (first, _a) = start(&connection, 1, false);
    let one = id(&peer.read().await);
    let (second, _b) = start(&connection, 2, false);
    let two = id(&peer.read().await);
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","id":{two},"result":{{"n":2}}}}"#
    ))
    .await;
    peer.write("not json").await;
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","id":{one},"error":{{"code":-32602,"message":"no"}}}}"#
    ))
    .await;
    assert_eq!(second.await.unwrap().unwrap().as_str(), r#"{"n":2}"#);
    let refused = first.await.unwrap().unwrap_err();
    assert!(matches!(refused, UpstreamError::Rpc { code: -32602, .. }));
}

#[tokio::test]
async fn an_answer_that_is_too_long_fails_its_own_call_only() {
    let (connection, mut peer) = stage(10_000, MODERN);
    let long = "x".repeat(50_000);
    for result_first in [true, false] {
        let (call, _events) = start(&connection, 1, false);
        let (other, _more) = start(&connection, 1, false);
        let (one, two) = (id(&peer.read().await), id(&peer.read().await));
        let text = if result_first {
            format!(r#"{{"result":{{"id":7,"t":"{long}"}},"jsonrpc":"2.0","id":{one}}}"#)
        } else {
            format!(r#"{{"jsonrpc":"2.0","id":{one},"result":{{"t":"{long}","id":7}}}}"#)
        };
        peer.write(&text).await;
        peer.write(&format!(r#"{{"jsonrpc":"2.0","id":{two},"result":{{}}}}"#))
            .await;
        let fault = call.await.unwrap().unwrap_err();
        assert!(matches!(fault, UpstreamError::TooLarge { limit: 10_000 }));
        other.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_late_answer_is_no_garbage() {
    let (connection, mut peer) = stage(1 << 20, MODERN);
    let (call, _events) = start(&connection, 1, false);
    let number = id(&peer.read().await);
    call.abort();
    let cancelled = peer.read().await;
    assert!(cancelled.as_str().contains("notifications/cancelled"));
    assert!(
        cancelled
            .as_str()
            .contains(&format!("\"requestId\":{number}"))
    );
    let late = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);
    for _ in 0..=FLOOD {
        peer.write(&late).await;
    }
    let (call, _events) = start(&connection, 1, false);
    let number = id(&peer.read().await);
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#
    ))
    .await;
    call.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_end_of_the_streams_breaks_what_is_in_flight() {
    let (connection, mut peer) = stage(1 << 20, MODERN);
    let (call, _events) = start(&connection, 1, false);
    peer.read().await;
    drop(peer);
    assert!(matches!(call.await.unwrap(), Err(UpstreamError::Broken)));
    let (late, _events) = start(&connection, 1, false);
    assert!(matches!(
        late.await.unwrap(),
        Err(UpstreamError::Unreachable)
    ));
}

#[tokio::test]
async fn a_flood_of_garbage_ends_the_connection() {
    let (connection, mut peer) = stage(1 << 20, MODERN);
    let (call, _events) = start(&connection, 1, false);
    peer.read().await;
    for _ in 0..FLOOD {
        if peer.output.write_all(b"garbage\n").await.is_err() {
            break;
        }
    }
    assert!(matches!(call.await.unwrap(), Err(UpstreamError::Broken)));
    assert!(connection.over.is_cancelled());
}

const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}"#;

#[tokio::test]
async fn a_log_message_never_reaches_a_caller_it_may_not_be_about() {
    let (connection, mut peer) = stage(1 << 20, MODERN);
    let finish = |number| format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);

    let (call, mut alone) = start(&connection, 1, true);
    let one = id(&peer.read().await);
    peer.write(LOG).await;
    let (other, mut events) = start(&connection, 2, true);
    let two = id(&peer.read().await);
    assert!(alone.recv().await.is_some());
    peer.write(LOG).await;
    peer.write(&finish(one)).await;
    call.await.unwrap().unwrap();
    assert!(alone.try_recv().is_err());
    // What comes now may still be about the first caller's call.
    peer.write(LOG).await;
    peer.write(&finish(two)).await;
    other.await.unwrap().unwrap();
    assert!(events.try_recv().is_err());
}

#[tokio::test]
async fn a_caller_that_does_not_keep_up_holds_up_nobody() {
    let (connection, mut peer) = stage(1 << 20, MODERN);
    let (call, mut events) = start(&connection, 1, false);
    let number = id(&peer.read().await);
    for step in 0..50 {
        peer.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number},"progress":{step}}}}}"#
        ))
        .await;
    }
    peer.write(&format!(
        r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#
    ))
    .await;
    call.await.unwrap().unwrap();
    let mut heard = 0;
    while events.try_recv().is_ok() {
        heard += 1;
    }
    assert_eq!(heard, 4);
}

#[tokio::test]
async fn a_legacy_server_is_answered_and_a_modern_one_is_not() {
    let ask = r#"{"jsonrpc":"2.0","id":"s","method":"ping"}"#;
    let (_connection, mut peer) = stage(1 << 20, Version::V2025_06_18);
    peer.write(ask).await;
    assert_eq!(
        peer.read().await.as_str(),
        r#"{"jsonrpc":"2.0","id":"s","result":{}}"#
    );
    let (connection, mut peer) = stage(1 << 20, MODERN);
    peer.write(ask).await;
    let (_call, _events) = start(&connection, 1, false);
    assert!(peer.read().await.get("method").is_some());
}

#[test]
fn the_id_of_a_cut_answer_is_found_at_either_end() {
    let find = |head: &str, tail: &str| id_of_cut(head.as_bytes(), tail.as_bytes());
    assert_eq!(
        find(r#"{"jsonrpc":"2.0","id":12,"result":{"id":3"#, "x"),
        Some(12)
    );
    assert_eq!(
        find(r#"{"result":{"id":3"#, r#"}]},"jsonrpc":"2.0","id":12}"#),
        Some(12)
    );
    assert_eq!(
        find(r#"{"result":{"id":3"#, r#"}]}, "id": 12, "jsonrpc":"2.0"}"#),
        Some(12)
    );
    assert_eq!(find("xxxx", "yyyy"), None);
    assert_eq!(find(r#"{"result":"#, r#""id":"a"}"#), None);
}
