//! Many upstreams as one server: merged lists in order and in pages, faults that
//! stay with their upstream, collisions, tenants.

use super::support::scripted::{Scripted, listing, plain, text};
use super::support::tool_server::{ToolServer, tool};
use super::support::{Era, Helper, Setup, Value, both, eventually, json};

async fn everything(era: &str) -> Helper {
    Helper::example("upstream_everything", &["--era", era]).await
}

fn keys<'a>(list: &'a Value, member: &str, key: &str) -> Vec<&'a str> {
    let list = list[member].as_array().unwrap().iter();
    list.map(|item| item[key].as_str().unwrap()).collect()
}

#[tokio::test]
async fn lists_of_all_families_are_merged_in_one_order_and_in_pages() {
    let gateway = Setup::new()
        .over("first", everything("legacy").await)
        .over("second", everything("modern").await)
        .upstream("dead", Helper::nowhere().config())
        .yaml("{ server: { page_size: 3 }, upstreams: { second: { prefix: b_ } } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for (method, member, key, count) in [
            ("prompts/list", "prompts", "name", 10),
            // The same URIs twice: the earlier upstream has them.
            ("resources/list", "resources", "uri", 4),
            (
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
                1,
            ),
        ] {
            let mut all: Vec<String> = Vec::new();
            let mut params = json!({});
            loop {
                let page = alice.request(method, params).await;
                let page = page.result();
                let keys = keys(page, member, key);
                assert!(keys.len() <= 3, "{method}");
                all.extend(keys.into_iter().map(str::to_owned));
                match page.get("nextCursor") {
                    Some(cursor) => params = json!({"cursor": cursor}),
                    None => break,
                }
            }
            assert_eq!(all.len(), count, "{era:?} {method}: {all:?}");
            assert!(all.is_sorted(), "{era:?} {method}: {all:?}");
        }
        // A cursor belongs to its list.
        let page = alice.request("prompts/list", json!({})).await;
        let cursor = page.result()["nextCursor"].clone();
        let foreign = alice
            .request("resources/list", json!({"cursor": cursor}))
            .await;
        assert_eq!(foreign.code(), -32602);
    }
}

#[tokio::test]
async fn a_dead_upstream_harms_only_its_own() {
    let mut dying = everything("modern").await;
    let config = dying.config();
    let gateway = Setup::new()
        .over("well", everything("legacy").await)
        .upstream("dying", config)
        .yaml("{ resources: { uri: prefix }, upstreams: { dying: { prefix: d_ } } }")
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    dying.process().kill();
    let read = json!({"uri": "test://dying/static-text"});
    let failed = alice.request("resources/read", read).await;
    assert_eq!((failed.status.as_u16(), failed.code()), (200, -32603));
    let got = alice
        .request("prompts/get", json!({"name": "d_test_simple_prompt"}))
        .await;
    assert_eq!(got.code(), -32603);
    let well = alice
        .request("resources/read", json!({"uri": "test://well/static-text"}))
        .await;
    assert!(well.message().get("result").is_some());
    // What it offered last stays listed for a while.
    let list = alice.request("prompts/list", json!({})).await;
    assert_eq!(keys(list.result(), "prompts", "name").len(), 10);
}

#[tokio::test]
async fn an_upstream_of_one_tenant_is_no_other_tenants() {
    let gateway = Setup::new()
        .over("shared", everything("modern").await)
        .over("acmes", everything("legacy").await)
        .yaml("{ resources: { uri: prefix }, upstreams: { acmes: { prefix: acmes_, tenants: [acme] } } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let mut bob = gateway.other_tenant().connect(era).await;
        let params = json!({"uri": "test://acmes/static-text"});
        assert!(
            alice
                .request("resources/read", params.clone())
                .await
                .message()
                .get("result")
                .is_some()
        );
        let hidden = bob.request("resources/read", params).await;
        assert_eq!(hidden.error()["message"], "Resource not found", "{era:?}");
        let list = bob.request("prompts/list", json!({})).await;
        assert!(!list.body.contains("acmes_"), "{era:?}");
        let prompt = json!({"name": "acmes_test_simple_prompt"});
        assert_eq!(bob.request("prompts/get", prompt).await.code(), -32602);
    }
}

#[tokio::test]
async fn rules_that_change_reach_lists_and_reads_at_once() {
    let mut gateway = Setup::new()
        .over("up", everything("modern").await)
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    let read = json!({"uri": "test://static-text"});
    assert!(
        alice
            .request("resources/read", read.clone())
            .await
            .message()
            .get("result")
            .is_some()
    );
    gateway.reload(r#"tenants: { acme: { resources: { deny: ["test://static-*"] } } }"#);
    eventually("the resource is hidden", async || {
        let list = alice.request("resources/list", json!({})).await;
        (!list.body.contains("test://static-text")).then_some(())
    })
    .await;
    assert_eq!(alice.request("resources/read", read).await.code(), -32602);
}

#[tokio::test]
async fn before_the_first_reading_a_list_waits_for_the_upstreams_and_not_for_ever() {
    // Connections are accepted, and answered a second later.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let never = format!("http://{}/mcp", silent.local_addr().unwrap());
    let serving = tokio::task::spawn_blocking(move || {
        std::thread::sleep(std::time::Duration::from_secs(2));
        Scripted::on(listener, Era::Modern, |asked| match asked.method() {
            "tools/list" => listing(&[&plain("late")]),
            _ => text("done"),
        })
    });
    let setup = Setup::new().upstream("late", Helper::at(&url).config());
    let setup = setup.upstream("silent", Helper::at(&never).config());
    let gateway = setup.start_unready().await;
    let mut alice = gateway.user("alice@acme").modern();
    assert_eq!(alice.names().await, ["late"]);
    drop(serving.await.unwrap());
}

#[tokio::test]
async fn a_list_of_which_no_upstream_can_be_reached_is_an_error() {
    let mut setup = Setup::new();
    for id in ["one", "two"] {
        setup = setup.upstream(id, Helper::nowhere().config());
    }
    let gateway = setup.start().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for method in ["tools/list", "resources/list", "prompts/list"] {
            let list = eventually("the upstreams have been tried", async || {
                let list = alice.request(method, json!({})).await;
                list.message().get("error").is_some().then_some(list)
            })
            .await;
            assert_eq!((list.status.as_u16(), list.code()), (200, -32603));
        }
    }
}

#[tokio::test]
async fn pages_go_on_where_they_were_while_the_list_changes() {
    let named = |names: &[&str]| {
        names
            .iter()
            .map(|name| tool(name, &json!({"type": "object"})))
            .collect()
    };
    let server = ToolServer::start(named(&["a", "b", "c", "d", "e"]), 1000).await;
    let setup = Setup::new().upstream("up", server.config());
    let gateway = setup.yaml("server: { page_size: 2 }").start().await;
    for era in both() {
        server.set_tools(named(&["a", "b", "c", "d", "e"]));
        let mut alice = gateway.user("alice@acme").connect(era).await;
        eventually("all five are there", async || {
            (alice.names().await == ["a", "b", "c", "d", "e"]).then_some(())
        })
        .await;
        let first = alice.request("tools/list", json!({})).await;
        assert_eq!(keys(first.result(), "tools", "name"), ["a", "b"]);
        let cursor = json!({"cursor": first.result()["nextCursor"]});
        server.set_tools(named(&["b", "bb", "d", "e", "f"]));
        eventually("the list is another", async || {
            alice.names().await.contains(&"bb".to_owned()).then_some(())
        })
        .await;
        let next = alice.request("tools/list", cursor).await;
        assert_eq!(keys(next.result(), "tools", "name"), ["bb", "d"]);
    }
}
