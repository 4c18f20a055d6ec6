//! What changes while clients are connected: tools of upstreams, rules of the
//! configuration, the end of the service; and who is told of it (C19).

use std::time::Duration;

use super::support::session::Session;
use super::support::sse::Events;
use super::support::tool_server::{ToolServer, tool};
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

const CHANGED: &str = "notifications/tools/list_changed";
/// Long enough for news that should not come.
const QUIET: Duration = Duration::from_secs(1);

/// One client with its open stream.
struct Listener {
    what: String,
    session: Session,
    events: Events,
    /// The id of `subscriptions/listen`, which every message repeats.
    id: Value,
}

impl Listener {
    async fn open(what: &str, mut session: Session) -> Self {
        let era = session.era();
        let (events, id) = match era {
            Era::Legacy => (session.listen().await, Value::Null),
            Era::Modern => {
                let wanted = json!({"notifications": {"toolsListChanged": true}});
                let listen = session.prepare("subscriptions/listen", wanted);
                (listen.stream().await, listen.id())
            }
        };
        let mut listener = Self {
            what: format!("{what} {era:?}"),
            session,
            events,
            id,
        };
        if era == Era::Modern {
            let first = listener.events.message().await.unwrap();
            assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
            assert_eq!(
                first["params"]["notifications"],
                json!({"toolsListChanged": true})
            );
            listener.assert_mine(&first);
        }
        listener
    }

    async fn open_both(what: &str, caller: &super::support::client::Caller) -> Vec<Self> {
        let mut listeners = Vec::new();
        for era in both() {
            listeners.push(Self::open(what, caller.connect(era).await).await);
        }
        listeners
    }

    fn assert_mine(&self, message: &Value) {
        let id = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*id, self.id, "{}: {message}", self.what);
    }

    /// Waits for the news, and for a list that has the tool, or has not.
    async fn hears_that(&mut self, name: &str, there: bool) {
        let news = self.events.notification(CHANGED).await;
        self.assert_mine(&news);
        let names = self.session.names().await;
        let listed = names.iter().any(|listed| listed == name);
        assert_eq!(listed, there, "{}: {names:?}", self.what);
    }

    async fn hears_nothing(&mut self) {
        let end = tokio::time::Instant::now() + QUIET;
        while let Ok(event) = tokio::time::timeout_at(end, self.events.next()).await {
            let event = event.unwrap_or_else(|| panic!("{}: the stream ended", self.what));
            assert_eq!(event.message(), None, "{}", self.what);
        }
    }
}

/// Everybody of these, at once.
async fn all_hear_nothing(listeners: &mut [Listener]) {
    let waiting = listeners.iter_mut().map(Listener::hears_nothing);
    futures_util::future::join_all(waiting).await;
}

#[tokio::test]
async fn who_may_see_an_upstreams_tools_hears_of_their_change_and_nobody_else() {
    for era in ["legacy", "modern"] {
        let server = Helper::example("upstream_rmcp", &["--era", era]).await;
        let gateway = Setup::new()
            .over("up", server)
            .yaml(
                r#"
                tenants:
                  acme: { tools: { allow: [] }, roles: { dev: { tools: { allow: ["*"] } } } }
                  globex: { tools: { allow: ["*"], deny: ["extra"] } }
                "#,
            )
            .start()
            .await;
        let dev = gateway.user("dev@acme").with(|token| token.roles(&["dev"]));
        let mut told = Listener::open_both(&format!("{era}, may"), &dev).await;
        let mut others = Listener::open_both("no role", &gateway.user("q@acme")).await;
        others.extend(Listener::open_both("denied", &gateway.other_tenant()).await);
        let mut hand = dev.modern();
        let added = hand.call("change_tools", json!({})).await;
        assert_eq!(added.text(), "added `extra`");
        for listener in &mut told {
            listener.hears_that("extra", true).await;
            assert_eq!(
                listener.session.call("extra", json!({})).await.text(),
                "extra"
            );
        }
        all_hear_nothing(&mut others).await;
        hand.call("change_tools", json!({})).await;
        for listener in &mut told {
            listener.hears_that("extra", false).await;
            // The server would still run it.
            let answer = listener.session.call("extra", json!({})).await;
            assert_eq!((answer.status.as_u16(), answer.code()), (200, -32602));
        }
        all_hear_nothing(&mut others).await;
        let refused = ["--tool", "extra", "--outcome", "refused:visibility"];
        gateway.audit_of(&refused, told.len()).await;
    }
}

#[tokio::test]
async fn an_upstream_that_announces_nothing_is_read_again_when_its_time_is_up() {
    let plain = json!({"type": "object"});
    let server = ToolServer::start(vec![tool("old", &plain)], 1000).await;
    let gateway = Setup::new().upstream("up", server.config()).start().await;
    let mut told = Listener::open_both("may", &gateway.user("alice@acme")).await;
    assert_eq!(told[0].session.call("old", json!({})).await.text(), "{}");
    server.set_tools(vec![tool("fresh", &plain)]);
    for listener in &mut told {
        listener.hears_that("fresh", true).await;
        let answer = listener.session.call("old", json!({})).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (200, -32602));
        assert_eq!(listener.session.call("fresh", json!({})).await.text(), "{}");
    }
    let sent: Vec<_> = server
        .calls()
        .iter()
        .map(|call| call["name"].clone())
        .collect();
    assert_eq!(sent, ["old", "fresh", "fresh"]);
    assert!(server.lists() < 20, "{}", server.lists());
}

#[tokio::test]
async fn a_filter_without_tools_is_acknowledged_without_them_and_hears_nothing() {
    let plain = json!({"type": "object"});
    let server = ToolServer::start(vec![tool("one", &plain)], 60_000).await;
    let mut gateway = Setup::new().upstream("up", server.config()).start().await;
    let mut alice = gateway.user("alice@acme").modern();
    let wanted = json!({"notifications": {"promptsListChanged": true, "resourceSubscriptions": ["file:///x"]}});
    let mut events = alice.stream("subscriptions/listen", wanted).await;
    let first = events.message().await.unwrap();
    assert_eq!(first["params"]["notifications"], json!({}));
    let mut told = Listener::open("may", gateway.user("alice@acme").modern()).await;
    gateway.reload(r#"tenants: { acme: { tools: { deny: ["one"] } } }"#);
    told.hears_that("one", false).await;
    let later = tokio::time::timeout(QUIET, events.message()).await;
    assert!(later.is_err(), "{later:?}");
    let wrong = alice.request("subscriptions/listen", json!({})).await;
    assert_eq!(wrong.code(), -32602);
}

fn reloads(metrics: &str, result: &str) -> u64 {
    let name = format!("toolgate_config_reloads_total{{result=\"{result}\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.parse().unwrap())
}

#[tokio::test]
async fn a_reload_tells_the_tenants_it_concerns_and_their_streams_go_on() {
    let server = Helper::example("upstream_rmcp", &["--era", "legacy"]).await;
    let mut gateway = Gateway::over(server).await;
    let mut acme = Listener::open_both("acme", &gateway.user("alice@acme")).await;
    let mut globex = Listener::open_both("globex", &gateway.other_tenant()).await;
    gateway.reload(r#"tenants: { acme: { tools: { deny: ["echo"] } } }"#);
    for listener in &mut acme {
        listener.hears_that("echo", false).await;
        assert_eq!(
            listener.session.call("echo", json!({})).await.code(),
            -32602
        );
    }
    all_hear_nothing(&mut globex).await;
    // The other tenant, over the same streams.
    gateway.reload(r#"tenants: { globex: { tools: { deny: ["add"] } } }"#);
    for listener in &mut globex {
        listener.hears_that("add", false).await;
    }
    all_hear_nothing(&mut acme).await;
    // A wrong file is refused whole: what is right in it counts no more than the rest.
    let wrong = r"tenants: { acme: { tools: { deny: [] } }, globex: { nonsense: 1 } }";
    gateway.reload(wrong);
    eventually("the refusal is counted", async || {
        (reloads(&gateway.metrics().await, "refused") == 1).then_some(())
    })
    .await;
    all_hear_nothing(&mut acme).await;
    assert!(!acme[0].session.names().await.contains(&"echo".to_owned()));
    gateway.logs().line_with("nonsense").await;
    // Mended, it counts; and what a server announces still arrives.
    gateway.reload("tenants: { globex: { nonsense: null } }");
    for listener in &mut acme {
        listener.hears_that("echo", true).await;
    }
    acme[1].session.call("change_tools", json!({})).await;
    for listener in acme.iter_mut().chain(&mut globex) {
        listener.hears_that("extra", true).await;
    }
    let metrics = gateway.metrics().await;
    assert_eq!(
        (reloads(&metrics, "taken"), reloads(&metrics, "refused")),
        (3, 1)
    );
}

#[tokio::test]
async fn a_reload_that_changes_upstreams_disturbs_neither_calls_nor_the_others() {
    let server = Helper::example("upstream_rmcp", &["--era", "legacy"]).await;
    let away = Helper::example("upstream_rmcp", &["--era", "modern"]).await;
    let mut gateway = Setup::new()
        .over("up", server)
        .over("away", away)
        .yaml("upstreams: { away: { prefix: away_ } }")
        .start()
        .await;
    let mut told = Listener::open_both("acme", &gateway.user("alice@acme")).await;
    let mut calls = Vec::new();
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for name in ["slow", "away_slow"] {
            let params = json!({
                "name": name, "arguments": {"ms": 3000}, "_meta": {"progressToken": 1},
            });
            let call = alice.prepare("tools/call", params);
            let mut events = call.stream().await;
            events.notification("notifications/progress").await;
            calls.push((name, call.id(), events));
        }
    }
    gateway.reload("upstreams: { away: null }");
    for listener in &mut told {
        listener.hears_that("away_slow", false).await;
        assert_eq!(
            listener.session.call("away_echo", json!({})).await.code(),
            -32602
        );
    }
    for (name, id, mut events) in calls {
        let last = events.until_response(&id).await.pop().unwrap();
        assert_eq!(
            last["result"]["content"][0]["text"], "done",
            "{name}: {last}"
        );
    }
}

#[tokio::test]
async fn at_its_end_the_service_finishes_calls_and_streams_gracefully() {
    let server = Helper::example("upstream_rmcp", &["--era", "modern"]).await;
    let mut gateway = Gateway::over(server).await;
    let mut modern = Listener::open("modern", gateway.user("alice@acme").modern()).await;
    let legacy = gateway.user("alice@acme").connect(Era::Legacy).await;
    let mut legacy = Listener::open("legacy", legacy).await;
    let mut calls = Vec::new();
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for (accept, token) in [
            ("application/json", json!(null)),
            ("text/event-stream", json!(1)),
        ] {
            let params = json!({
                "name": "slow", "arguments": {"ms": 2500}, "_meta": {"progressToken": token},
            });
            let call = alice.prepare("tools/call", params).header("accept", accept);
            calls.push(tokio::spawn(async move { call.send().await }));
        }
    }
    eventually("all calls run", async || {
        let running = gateway
            .metrics()
            .await
            .contains("toolgate_inflight_calls 4");
        running.then_some(())
    })
    .await;
    let status = gateway.sigterm_and_wait().await;
    assert!(status.success(), "{status}");
    for call in calls {
        assert_eq!(call.await.unwrap().text(), "done");
    }
    let cancelled = modern.events.message().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], modern.id);
    modern.assert_mine(&cancelled);
    let result = modern.events.message().await.unwrap();
    assert_eq!(
        (&result["id"], &result["result"]["resultType"]),
        (&modern.id, &json!("complete"))
    );
    let meta = &result["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*meta, modern.id);
    assert_eq!(modern.events.message().await, None);
    assert_eq!(legacy.events.message().await, None);
}

#[tokio::test]
async fn a_session_has_one_stream_and_the_newer_closes_the_older() {
    let gateway = Gateway::start("streams: { per_user: 1 }").await;
    let replica = gateway.replica().await;
    let caller = gateway.user("alice@acme");
    let mut here = caller.connect(Era::Legacy).await;
    let mut there = here.used_by(caller.clone().through(&replica));
    // Over and over: the place under the cap goes along.
    let mut older = here.listen().await;
    for _ in 0..3 {
        let newer = here.listen().await;
        assert_eq!(older.message().await, None);
        older = newer;
    }
    let mut elsewhere = there.listen().await;
    assert_eq!(older.message().await, None);
    let mut back = eventually("the place is free again", async || {
        let answer = here.get(&[]).await;
        (answer.status() == 200).then_some(answer)
    })
    .await;
    assert_eq!(elsewhere.message().await, None);
    assert!(back.chunk().await.unwrap().is_some());
}

#[tokio::test]
async fn streams_are_capped_by_user_and_in_all_and_a_place_comes_back() {
    let gateway = Gateway::start("streams: { per_user: 2, total: 3 }").await;
    let open = async |who: &str, era| {
        let mut session = gateway.user(who).connect(era).await;
        match era {
            Era::Legacy => session.get(&[]).await,
            Era::Modern => {
                let wanted = json!({"notifications": {"toolsListChanged": true}});
                session.prepare("subscriptions/listen", wanted).open().await
            }
        }
    };
    let refused = async |who: &str, era| {
        let answer = super::support::answer::Answer::read(open(who, era).await, &Value::Null);
        let answer = answer.await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (429, 1429),
            "{who} {era:?}"
        );
        assert!(answer.header("retry-after").is_some());
        assert!(
            answer.error()["data"]["retryAfterMs"].is_u64(),
            "{answer:?}"
        );
        let id = &answer.message()["id"];
        assert_eq!(id.is_null(), era == Era::Legacy, "{answer:?}");
    };
    let first = open("alice@acme", Era::Modern).await;
    let second = open("alice@acme", Era::Legacy).await;
    assert_eq!(
        (first.status().as_u16(), second.status().as_u16()),
        (200, 200)
    );
    for era in both() {
        refused("alice@acme", era).await;
    }
    let third = open("bob@globex", Era::Modern).await;
    assert_eq!(third.status(), 200);
    for era in both() {
        refused("carol@acme", era).await;
    }
    // Who hangs up makes room (C12 4), for either kind.
    drop(first);
    drop(second);
    for era in both() {
        let again = eventually("room again", async || {
            let answer = open("alice@acme", era).await;
            (answer.status() == 200).then_some(answer)
        });
        drop(again.await);
    }
}
