//! Tenants beside one another: the same names, other upstreams, other schemas,
//! other credentials, and nothing that one could see or break of the other.

use std::sync::{Arc, Mutex};

use futures_util::future::join_all;

use super::support::folder::Folder;
use super::support::scripted::{Asked, Scripted, listing, plain, text};
use super::support::session::Prepared;
use super::support::{Era, Helper, Setup, Value, both, eventually, json};

/// The tool `search` with one required argument of this type.
fn search(argument: &str, kind: &str) -> String {
    json!({
        "name": "search", "description": "Finds something.",
        "inputSchema": {"type": "object", "required": [argument], "properties": {argument: {"type": kind}}},
    })
    .to_string()
}

/// A server whose one tool answers with `name` and the credential that came.
fn searching(name: &'static str, definition: Arc<Mutex<String>>) -> Scripted {
    Scripted::start(Era::Modern, move |asked| match asked.method() {
        "tools/list" => listing(&[&definition.lock().unwrap()]),
        _ => text(&format!(
            "{name} {}",
            asked.header("x-key").unwrap_or("none")
        )),
    })
}

fn keyed(server: &Scripted, tenant: &str, key: &std::path::Path) -> Value {
    let mut config = server.config();
    config["tenants"] = json!([tenant]);
    config["credentials"] = json!({"header": {"name": "X-Key", "value_file": key}});
    config
}

#[tokio::test]
async fn the_same_tool_name_in_two_tenants_is_two_tools() {
    // C30.
    let of_acme = Arc::new(Mutex::new(search("q", "string")));
    let a = searching("A", Arc::clone(&of_acme));
    let g = searching("G", Arc::new(Mutex::new(search("n", "integer"))));
    let folder = Folder::new();
    let key_a = folder.file("ca", "CA");
    let mut gateway = Setup::new()
        .upstream("a", keyed(&a, "acme", &key_a))
        .upstream("g", keyed(&g, "globex", &folder.file("cg", "CG")))
        .yaml(
            r#"
            tenants: { initech: { tools: { allow: ["*"] } } }
            identity_providers: { corporate: { tenants: [acme, globex, initech] } }
            "#,
        )
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let mut bob = gateway.other_tenant().connect(era).await;
        let call = |arguments: Value| json!({"name": "search", "arguments": arguments});
        let calls: Vec<_> = (0..50)
            .flat_map(|turn| {
                [
                    alice.prepare("tools/call", call(json!({"q": "x"}))),
                    bob.prepare("tools/call", call(json!({"n": turn}))),
                ]
            })
            .collect();
        let answers = join_all(calls.iter().map(Prepared::send)).await;
        for (turn, answer) in answers.iter().enumerate() {
            let right = if turn % 2 == 0 { "A CA" } else { "G CG" };
            assert_eq!(answer.text(), right, "{era:?} {turn}");
        }
        for (session, foreign) in [(&mut alice, json!({"n": 1})), (&mut bob, json!({"q": "x"}))] {
            assert!(
                session.call("search", foreign).await.is_error(),
                "{era:?}: its own schema counts"
            );
        }
        let none = gateway
            .user("dora@initech")
            .connect(era)
            .await
            .call("search", json!({"q": "x"}))
            .await;
        assert_eq!(
            (none.status.as_u16(), none.code()),
            (200, -32602),
            "{era:?}"
        );
    }
    assert_eq!((a.calls().len(), g.calls().len()), (100, 100));
    for (tenant, upstream) in [("acme", "a"), ("globex", "g")] {
        let records = gateway.audit(&["--tenant", tenant, "--outcome", "ok", "--limit", "1000"]);
        assert_eq!(records.len(), 100, "{tenant}");
        assert!(
            records.iter().all(|record| record["upstream"] == upstream),
            "{tenant}"
        );
    }
    another_schema_here_leaves_the_other_tenant_alone(&mut gateway, &of_acme, &key_a).await;
    a_tool_removed_here_stays_there(&mut gateway).await;
}

async fn another_schema_here_leaves_the_other_tenant_alone(
    gateway: &mut super::support::Gateway,
    of_acme: &Mutex<String>,
    key: &std::path::Path,
) {
    *of_acme.lock().unwrap() = search("question", "string");
    super::support::config::write(key, "CA2");
    let mut alice = gateway.user("alice@acme").modern();
    let mut bob = gateway.other_tenant().modern();
    eventually("the new schema counts", async || {
        let answer = alice.call("search", json!({"question": "x"})).await;
        assert_eq!(bob.call("search", json!({"n": 1})).await.text(), "G CG");
        (answer.text() == "A CA2").then_some(())
    })
    .await;
}

async fn a_tool_removed_here_stays_there(gateway: &mut super::support::Gateway) {
    gateway.reload("upstreams: { a: null }");
    let mut alice = gateway.user("alice@acme").modern();
    let mut bob = gateway.other_tenant().modern();
    eventually("the tool is gone", async || {
        let answer = alice.call("search", json!({"question": "x"})).await;
        assert_eq!(bob.call("search", json!({"n": 1})).await.text(), "G CG");
        (answer.message().get("error").is_some() && answer.code() == -32602).then_some(())
    })
    .await;
    assert!(alice.names().await.is_empty());
    assert_eq!(bob.names().await, ["search"]);
}

/// A server that lists by credential: `CA` is shown one tool more.
fn by_credential(asked: &Asked) -> super::support::scripted::Say {
    match (asked.method(), asked.header("x-key")) {
        ("tools/list", Some("CA")) => listing(&[&plain("a_only"), &plain("common")]),
        ("tools/list", Some("CB")) => listing(&[&plain("b_only"), &plain("common")]),
        ("tools/list", _) => listing(&[&plain("common")]),
        (_, key) => text(key.unwrap_or("none")),
    }
}

#[tokio::test]
async fn lists_are_kept_by_who_is_asking() {
    // C29.
    let server = Scripted::start(Era::Modern, by_credential);
    let folder = Folder::new();
    let mut gateway = Setup::new()
        .upstream("ua", keyed(&server, "acme", &folder.file("ca", "CA")))
        .upstream("ug", keyed(&server, "globex", &folder.file("cg", "CG")))
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let mut bob = gateway.other_tenant().connect(era).await;
        assert_eq!(alice.names().await, ["a_only", "common"], "{era:?}");
        assert_eq!(bob.names().await, ["common"], "{era:?}");
        assert_eq!(
            bob.call("a_only", json!({})).await.code(),
            -32602,
            "{era:?}"
        );
        let list = alice.request("tools/list", json!({})).await;
        let modern = (&list.result()["cacheScope"], &list.result()["resultType"]);
        let expected = match era {
            Era::Modern => (json!("private"), json!("complete")),
            Era::Legacy => (Value::Null, Value::Null),
        };
        assert_eq!(
            modern,
            (&expected.0, &expected.1),
            "each era has its own shape"
        );
    }
    folder.file("ca", "CB");
    let mut alice = gateway.user("alice@acme").modern();
    eventually("another credential is another list", async || {
        (alice.names().await == ["b_only", "common"]).then_some(())
    })
    .await;
    assert_eq!(alice.call("common", json!({})).await.text(), "CB");
    gateway.reload("tenants: { globex: { tools: { allow: [nothing] } } }");
    let mut bob = gateway.other_tenant().modern();
    eventually("what may be seen is asked at each request", async || {
        bob.names().await.is_empty().then_some(())
    })
    .await;
    assert_eq!(alice.names().await, ["b_only", "common"]);
}

#[tokio::test]
async fn a_cold_catalogue_shows_nobody_a_foreign_tool() {
    // C29 b: each reload that touches the upstreams makes the lists cold again.
    let server = Scripted::start(Era::Modern, by_credential);
    let folder = Folder::new();
    let mut gateway = Setup::new()
        .upstream("ua", keyed(&server, "acme", &folder.file("ca", "CA")))
        .upstream("ug", keyed(&server, "globex", &folder.file("cg", "CG")))
        .start()
        .await;
    for round in 1..=4 {
        gateway.reload(&format!(
            "upstreams: {{ ua: {{ concurrent: {round} }}, ug: {{ concurrent: {round} }} }}"
        ));
        let crowd = (0..10).map(|turn| {
            let who = if turn % 2 == 0 {
                "alice@acme"
            } else {
                "bob@globex"
            };
            let caller = gateway.user(who);
            async move {
                for _ in 0..25 {
                    let names = caller.modern().names().await;
                    let whole: &[&str] = if turn % 2 == 0 {
                        &["a_only", "common"]
                    } else {
                        &["common"]
                    };
                    assert_eq!(names, whole, "{who} in round {round}");
                }
            }
        });
        join_all(crowd).await;
        let reloads = "The changed configuration is in force";
        eventually("the reload is in force", async || {
            let lines = gateway.logs().lines();
            let count = lines.iter().filter(|line| line.contains(reloads)).count();
            (count >= round).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn each_role_and_scope_sees_its_own() {
    // C29 c.
    let server = Scripted::start(Era::Legacy, |asked| match asked.method() {
        "tools/list" => listing(&[&plain("read_a"), &plain("write_a"), &plain("purge")]),
        _ => text("done"),
    });
    let gateway = Setup::new()
        .upstream("up", server.config())
        .yaml(
            r#"
            tenants:
              acme:
                tools: { allow: ["read_*"], deny: ["purge"] }
                roles:
                  writer: { tools: { allow: ["write_*"] } }
                  admin: { tools: { allow: ["*"] } }
              globex:
                tools: { allow: ["*"] }
                hide_without_scopes: true
            tools:
              - { match: purge, scopes: [admin] }
            "#,
        )
        .start()
        .await;
    for era in both() {
        for (who, roles, scope, sees) in [
            ("alice@acme", &[][..], "mcp", &["read_a"][..]),
            ("alice@acme", &["writer"], "mcp", &["read_a", "write_a"]),
            (
                "alice@acme",
                &["admin"],
                "mcp admin",
                &["read_a", "write_a"],
            ),
            ("alice@acme", &["stranger"], "mcp", &["read_a"]),
            ("bob@globex", &[], "mcp", &["read_a", "write_a"]),
            (
                "bob@globex",
                &[],
                "mcp admin",
                &["purge", "read_a", "write_a"],
            ),
        ] {
            let caller = gateway
                .user(who)
                .with(|token| token.roles(roles).scope(scope));
            let mut session = caller.connect(era).await;
            assert_eq!(
                session.names().await,
                sees,
                "{era:?} {who} {roles:?} {scope}"
            );
            for tool in ["read_a", "write_a", "purge"] {
                let answer = session.call(tool, json!({})).await;
                let ran = answer.message().get("result").is_some();
                assert_eq!(
                    ran,
                    sees.contains(&tool),
                    "{era:?} {who} {roles:?} {scope} {tool}"
                );
            }
        }
    }
}

#[tokio::test]
async fn sessions_at_a_stateful_upstream_are_not_shared() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .upstream("up", hostile.config_of("/legacy"))
        .start()
        .await;
    for era in both() {
        for who in ["alice@acme", "carol@acme", "alice@globex"] {
            let mut session = gateway.user(who).connect(era).await;
            for _ in 0..2 {
                session
                    .call("echo", json!({"who": who, "era": format!("{era:?}")}))
                    .await;
            }
        }
    }
    let answer = gateway
        .http()
        .get(hostile.url_of("/seen"))
        .send()
        .await
        .unwrap();
    let seen: Vec<Value> = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let mut owners: std::collections::HashMap<String, String> = std::collections::HashMap::new();
    for entry in seen {
        let body: Value =
            serde_json::from_str(entry["body"].as_str().unwrap_or("null")).unwrap_or_default();
        if body["method"] != "tools/call" {
            continue;
        }
        let owner = body["params"]["arguments"].to_string();
        let session = entry["headers"]["mcp-session-id"]
            .as_str()
            .unwrap()
            .to_owned();
        let first = owners.entry(session).or_insert_with(|| owner.clone());
        assert_eq!(*first, owner, "one session has one owner");
    }
    assert_eq!(owners.len(), 6);
}
