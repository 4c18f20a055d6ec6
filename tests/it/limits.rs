//! Whose bucket, how many at once, and what a refusal says (C24, `rules.md` §5).

use super::support::answer::Answer;
use super::support::client::Caller;
use super::support::session::Session;
use super::support::{Era, Gateway, Helper, Setup, Value, both, eventually, json};

async fn gateway(hostile: &Helper, fragment: &str) -> Gateway {
    Setup::new()
        .yaml(fragment)
        .yaml("upstreams: { up: { breaker: { failures: 1000 } } }")
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await
}

async fn hostile() -> Helper {
    Helper::example("upstream_hostile", &[]).await
}

/// How many of `tries` calls pass; the rest are refused by this policy.
async fn passed(session: &mut Session, tries: usize, policy: &str) -> usize {
    let mut passed = 0;
    for _ in 0..tries {
        let answer = session.call("echo", json!({})).await;
        if answer.status == 200 {
            passed += 1;
        } else {
            refused(&answer, policy);
        }
    }
    passed
}

fn refused(answer: &Answer, policy: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.code()),
        (429, 1429),
        "{answer:?}"
    );
    let standing = answer.header("ratelimit").unwrap();
    assert!(
        standing.starts_with(&format!("\"{policy}\";r=0;t=")),
        "{standing}"
    );
    let described = answer.header("ratelimit-policy").unwrap();
    assert!(
        described.starts_with(&format!("\"{policy}\";q=")),
        "{described}"
    );
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    let millis = answer.error()["data"]["retryAfterMs"].as_u64().unwrap();
    assert!(millis > 0 && millis <= wait * 1000, "{wait} s, {millis} ms");
    assert!(answer.message()["id"].is_number(), "the id is echoed");
}

fn through(caller: &Caller, client: &str) -> Caller {
    caller.clone().with(|token| token.client(client))
}

/// C24 a: after authentication the key is who calls, not where from.
#[tokio::test]
async fn a_user_has_one_bucket_over_all_clients_and_eras() {
    let hostile = hostile().await;
    let fragment = "tenants: { acme: { limits: { per_user: { rate: 5/h, burst: 5 } } } }";
    let gateway = gateway(&hostile, fragment).await;
    let alice = gateway.user("alice@acme");
    let mut legacy = alice.connect(Era::Legacy).await;
    let mut modern = alice.modern();
    assert_eq!(passed(&mut legacy, 3, "user").await, 3);
    assert_eq!(passed(&mut modern, 3, "user").await, 2);
    let mut other_client = through(&alice, "fresh").modern();
    assert_eq!(
        passed(&mut other_client, 2, "user").await,
        0,
        "a new client is no new bucket"
    );
    let mut anna = gateway
        .user("anna@acme")
        .header("x-forwarded-for", "10.0.0.9")
        .modern();
    assert_eq!(
        passed(&mut anna, 1, "user").await,
        1,
        "the same address, another user"
    );
    let mut namesake = gateway.user("alice@globex").modern();
    assert_eq!(
        passed(&mut namesake, 6, "user").await,
        6,
        "the same subject in another tenant"
    );
}

#[tokio::test]
async fn clients_and_tenants_have_buckets_over_their_users() {
    let hostile = hostile().await;
    let fragment = "
        tenants:
          acme: { limits: { per_client: { rate: 4/h, burst: 4 } } }
          globex: { limits: { per_tenant: { rate: 4/h, burst: 4 } } }
    ";
    let gateway = gateway(&hostile, fragment).await;
    for (tenant, policy) in [("acme", "client"), ("globex", "tenant")] {
        let user = |name: &str| gateway.user(&format!("{name}@{tenant}"));
        assert_eq!(passed(&mut user("ann").modern(), 3, policy).await, 3);
        assert_eq!(passed(&mut user("ben").modern(), 3, policy).await, 1);
        let left = if policy == "client" { 2 } else { 0 };
        let mut other = through(&user("cid"), "other").modern();
        assert_eq!(passed(&mut other, 2, policy).await, left, "{policy}");
    }
}

#[tokio::test]
async fn a_class_of_tools_has_a_bucket_in_each_tenant() {
    let hostile = hostile().await;
    let fragment = r#"tools: [{ match: "bad_*", limits: { rate: 2/h, burst: 2 } }]"#;
    let gateway = gateway(&hostile, fragment).await;
    for who in ["alice@acme", "bob@globex"] {
        let mut session = gateway.user(who).modern();
        for _ in 0..2 {
            assert_eq!(session.call("bad_utf8", json!({})).await.status, 200);
        }
        refused(&session.call("bad_utf8", json!({})).await, "tool");
        let mut colleague = gateway
            .user(&who.replace("alice", "anna").replace("bob", "ben"))
            .modern();
        refused(&colleague.call("bad_utf8", json!({})).await, "tool");
        assert_eq!(
            passed(&mut session, 2, "tool").await,
            2,
            "other tools are not in the class"
        );
    }
    let refusals = gateway.audit(&["--outcome", "refused:limit"]);
    assert_eq!(refusals.len(), 4);
    for refusal in refusals {
        assert_eq!(refusal["reason"], "tool");
        assert_eq!(refusal["upstream"], "up", "the tool was known by then");
    }
}

#[tokio::test]
async fn hidden_and_missing_tools_are_charged_like_any_other() {
    let hostile = hostile().await;
    let fragment = r#"
        tenants:
          acme: { tools: { deny: ["html_500"] }, limits: { per_user: { rate: 4/h, burst: 4 } } }
    "#;
    let gateway = gateway(&hostile, fragment).await;
    for (era, who) in [(Era::Legacy, "alice@acme"), (Era::Modern, "anna@acme")] {
        let mut session = gateway.user(who).connect(era).await;
        for tool in ["html_500", "missing", "html_500", "missing"] {
            assert_eq!(session.call(tool, json!({})).await.code(), -32602);
        }
        refused(&session.call("html_500", json!({})).await, "user");
        refused(&session.call("missing", json!({})).await, "user");
    }
}

#[tokio::test]
async fn finding_out_where_one_stands_has_a_budget_of_its_own() {
    let hostile = hostile().await;
    let fragment = "
        tenants:
          acme: { limits: { per_user: { rate: 1/h, burst: 1 }, browse: { rate: 6/h, burst: 6 } } }
    ";
    let gateway = gateway(&hostile, fragment).await;
    for (era, who, opening) in [
        (Era::Legacy, "alice@acme", 1),
        (Era::Modern, "anna@acme", 0),
    ] {
        let mut session = gateway.user(who).connect(era).await;
        assert_eq!(passed(&mut session, 2, "user").await, 1, "{era:?}");
        for _ in opening..6 {
            assert_eq!(
                session.request("tools/list", json!({})).await.status,
                200,
                "{era:?}"
            );
        }
        refused(&session.request("tools/list", json!({})).await, "browse");
    }
    assert_eq!(
        gateway.audit(&["--outcome", "refused:limit"]).len(),
        2,
        "lists are not on record"
    );
}

/// Holds `count` calls open.
async fn held(caller: &Caller, hostile: &Helper, count: usize) -> Vec<(Session, Value, Held)> {
    let before = hostile.calls().await.len();
    let mut held = Vec::new();
    for _ in 0..count {
        let mut session = caller.connect(Era::Legacy).await;
        let call = session.prepare("tools/call", json!({"name": "hang", "arguments": {}}));
        let id = call.id();
        held.push((session, id, tokio::spawn(async move { call.send().await })));
    }
    eventually("the calls run", async || {
        (hostile.calls().await.len() == before + count).then_some(())
    })
    .await;
    held
}

type Held = tokio::task::JoinHandle<Answer>;

#[tokio::test]
async fn places_come_back_when_a_call_ends_is_cancelled_or_times_out() {
    let hostile = hostile().await;
    let fragment = r#"
        tenants: { acme: { limits: { per_user: { rate: 1000/s, burst: 1000, concurrent: 2 } } } }
        tools: [{ match: "hang", timeout: 5s }]
    "#;
    let gateway = gateway(&hostile, fragment).await;
    let alice = gateway.user("alice@acme");
    let mut session = alice.connect(Era::Legacy).await;
    // They end: one by a cancellation, one at its deadline.
    let mut holding = held(&alice, &hostile, 2).await;
    for era in both() {
        let full = alice.connect(era).await.call("echo", json!({})).await;
        assert_eq!((full.status.as_u16(), full.code()), (429, 1429), "{era:?}");
        assert_eq!(
            full.header("ratelimit-policy"),
            Some("\"user\";q=2;qu=\"concurrent-requests\"")
        );
        assert!(full.header("retry-after").is_some());
    }
    assert_eq!(
        gateway
            .user("anna@acme")
            .modern()
            .call("echo", json!({}))
            .await
            .status,
        200
    );
    let (first, id, answer) = holding.remove(0);
    let stop = first
        .notify("notifications/cancelled", json!({"requestId": id}))
        .await;
    assert_eq!(stop.status, 202);
    answer.await.unwrap();
    assert_eq!(
        session.call("echo", json!({})).await.status,
        200,
        "cancelled"
    );
    let (_, _, answer) = holding.remove(0);
    let late = answer.await.unwrap();
    assert!(late.is_error(), "{late:?}");
    // Both places are free again, and stay so however calls end.
    for tool in [
        "echo",
        "tool_error",
        "html_500",
        "missing",
        "rpc_error",
        "echo",
    ] {
        assert_eq!(session.call(tool, json!({})).await.status, 200, "{tool}");
    }
    let holding = held(&alice, &hostile, 2).await;
    assert_eq!(session.call("echo", json!({})).await.status, 429);
    drop(holding);
}

#[tokio::test]
async fn a_modern_caller_that_hangs_up_gives_its_place_back() {
    let hostile = hostile().await;
    let fragment =
        "tenants: { acme: { limits: { per_user: { rate: 1000/s, burst: 1000, concurrent: 1 } } } }";
    let gateway = gateway(&hostile, fragment).await;
    let mut alice = gateway.user("alice@acme").modern();
    let call = alice.prepare("tools/call", json!({"name": "hang", "arguments": {}}));
    let open = call.open().await;
    assert_eq!(alice.call("echo", json!({})).await.status, 429);
    drop(open);
    eventually("the place is free", async || {
        (alice.call("echo", json!({})).await.status == 200).then_some(())
    })
    .await;
    eventually("the upstream's work was stopped", async || {
        (gateway.audit(&["--tool", "hang"])[0]["outcome"] == "cancelled").then_some(())
    })
    .await;
}

/// A reload that leaves a limit alone leaves its state alone.
#[tokio::test]
async fn a_reload_keeps_the_buckets_whose_settings_did_not_change() {
    let hostile = hostile().await;
    let fragment = "
        tenants:
          acme: { limits: { per_user: { rate: 3/h, burst: 3 } } }
          globex: { limits: { per_user: { rate: 3/h, burst: 3 } } }
    ";
    let mut gateway = gateway(&hostile, fragment).await;
    let mut alice = gateway.user("alice@acme").modern();
    let mut bob = gateway.other_tenant().modern();
    assert_eq!(passed(&mut alice, 4, "user").await, 3);
    assert_eq!(passed(&mut bob, 4, "user").await, 3);
    gateway.reload("tenants: { globex: { limits: { per_user: { rate: 4/h, burst: 4 } } } }");
    eventually("the new limit is in force", async || {
        (bob.call("echo", json!({})).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(passed(&mut bob, 4, "user").await, 3);
    assert_eq!(
        passed(&mut alice, 2, "user").await,
        0,
        "an unchanged limit is spent as before"
    );
}

#[tokio::test]
async fn one_tenants_load_spends_nothing_of_anothers() {
    let hostile = hostile().await;
    let fragment = "
        tenants:
          acme: { limits: { per_tenant: { rate: 10/h, burst: 10, concurrent: 4 } } }
          globex: { limits: { per_tenant: { rate: 10/h, burst: 10, concurrent: 4 } } }
    ";
    let gateway = gateway(&hostile, fragment).await;
    let flood: Vec<_> = (0..8)
        .map(|number| {
            let mut session = gateway.user(&format!("user{number}@acme")).modern();
            tokio::spawn(async move {
                let mut passed = 0;
                for _ in 0..10 {
                    let answer = session.call("echo", json!({})).await;
                    passed += usize::from(answer.status == 200);
                }
                passed
            })
        })
        .collect();
    let mut bob = gateway.other_tenant().modern();
    assert_eq!(passed(&mut bob, 10, "tenant").await, 10);
    let mut through = 0;
    for flood in flood {
        through += flood.await.unwrap();
    }
    assert_eq!(through, 10, "exactly the burst");
}

/// C24 b to e: before authentication the key is the address, as a trusted proxy gives it.
#[tokio::test]
async fn failed_sign_ins_are_counted_by_the_address_that_can_be_believed() {
    let fragment = |proxies: &str| {
        format!(
            "{{ server: {{ trusted_proxies: [{proxies}] }}, edge: {{ per_address: {{ rate: 5/h, burst: 5 }} }} }}"
        )
    };
    let post = async |gateway: &Gateway, token: &str, forwarded: &str| {
        let caller = if token.is_empty() {
            gateway.anonymous()
        } else {
            gateway.anonymous().bearer(token)
        };
        let headers = [
            ("x-forwarded-for", forwarded),
            ("content-type", "application/json"),
        ];
        caller.raw("POST", &headers, "{}").await.status.as_u16()
    };
    let random = |turn: u32| std::net::Ipv4Addr::from(0x0b00_0000 + turn).to_string();
    let behind = Gateway::start(&fragment("127.0.0.0/8")).await;
    for turn in 0..6 {
        let want = if turn < 5 { 401 } else { 429 };
        let forwarded = format!("{}, 198.51.100.4", random(turn));
        assert_eq!(post(&behind, "", &forwarded).await, want, "b, turn {turn}");
    }
    for turn in 0..6_u32 {
        let want = if turn < 5 { 401 } else { 429 };
        let address = format!("2001:db8:1:2::{turn}");
        assert_eq!(post(&behind, "", &address).await, want, "d, turn {turn}");
    }
    for turn in 0..6 {
        let want = if turn < 5 { 401 } else { 429 };
        let forged = behind
            .user(&format!("random{turn}@acme"))
            .with(super::support::keys::Token::broken);
        assert_eq!(
            post(&behind, forged.token(), "198.51.100.77").await,
            want,
            "e, turn {turn}"
        );
    }
    let direct = Gateway::start(&fragment("10.0.0.0/8")).await;
    for turn in 0..6 {
        let want = if turn < 5 { 401 } else { 429 };
        assert_eq!(
            post(&direct, "", &random(turn)).await,
            want,
            "c, turn {turn}"
        );
    }
    let mut alice = direct.user("alice@acme").modern();
    assert_eq!(
        alice.request("server/discover", json!({})).await.status,
        200,
        "a good token passes from a limited address"
    );
}

#[tokio::test]
async fn open_streams_are_capped_and_cost_no_call() {
    let hostile = hostile().await;
    let fragment = "
        streams: { per_user: 2 }
        tenants: { acme: { limits: { per_user: { rate: 1/h, burst: 1 } } } }
    ";
    let gateway = gateway(&hostile, fragment).await;
    let mut alice = gateway.user("alice@acme").modern();
    let first = alice.listen().await;
    let _second = alice.listen().await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let full = alice.request("subscriptions/listen", wanted).await;
    assert_eq!((full.status.as_u16(), full.code()), (429, 1429));
    assert!(full.header("retry-after").is_some());
    assert_eq!(
        passed(&mut alice, 1, "user").await,
        1,
        "streams spend no call"
    );
    eventually("they are shown", async || {
        let metrics = gateway.metrics().await;
        metrics.contains("toolgate_open_streams 2\n").then_some(())
    })
    .await;
    drop(first);
    eventually("a place is free", async || {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        let call = alice.prepare("subscriptions/listen", wanted);
        (call.open().await.status() == 200).then_some(())
    })
    .await;
}
