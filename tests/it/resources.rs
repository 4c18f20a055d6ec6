//! Resources and their templates, in all four combinations of eras.

use super::support::{Era, Gateway, Helper, Setup, Value, both, json};

/// What the rules leave of the everything server's resources.
const SOME: &str = r#"
tenants:
  acme:
    resources: { allow: [], deny: ["test://static-binary"] }
    roles:
      reader: { resources: { allow: ["test://*", "ui://*"] } }
      templates: { resources: { allow: [{ match: "test://template/*", upstream: up }] } }
"#;

async fn everything(era: &str) -> Helper {
    Helper::example("upstream_everything", &["--era", era]).await
}

fn not_found(era: Era) -> i64 {
    match era {
        Era::Modern => -32602,
        Era::Legacy => -32002,
    }
}

fn uris(list: &Value) -> Vec<&str> {
    let list = list["resources"].as_array().unwrap().iter();
    list.map(|resource| resource["uri"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn resources_are_listed_and_read_as_the_upstream_has_them() {
    for upstream in ["legacy", "modern"] {
        let gateway = Gateway::over(everything(upstream).await).await;
        for era in both() {
            let what = format!("{era:?} over {upstream}");
            let mut alice = gateway.user("alice@acme").connect(era).await;
            let list = alice.request("resources/list", json!({})).await;
            let list = list.result();
            assert_eq!(
                uris(list),
                [
                    "test://static-binary",
                    "test://static-text",
                    "test://watched-resource",
                    "ui://test/widget.html"
                ],
                "{what}"
            );
            let text = &list["resources"][1];
            assert_eq!(text["annotations"]["priority"], json!(0.5), "{what}");
            assert_eq!(text["icons"][0]["mimeType"], "image/png", "{what}");
            assert_eq!(
                text["_meta"]["com.example/kept"]["a"],
                json!(100.0),
                "{what}"
            );
            assert_eq!(text["com.example/unknown"], json!([1, null]), "{what}");
            assert_eq!(list.get("ttlMs").is_some(), era == Era::Modern, "{what}");
            let templates = alice.request("resources/templates/list", json!({})).await;
            let template = &templates.result()["resourceTemplates"][0];
            assert_eq!(
                template["uriTemplate"], "test://template/{id}/data",
                "{what}"
            );
            for (uri, wanted) in [
                (
                    "test://static-text",
                    "This is the content of the static text resource.",
                ),
                ("test://template/7/data", "Data for ID: 7"),
            ] {
                let read = alice.request("resources/read", json!({"uri": uri})).await;
                let contents = &read.result()["contents"][0];
                assert_eq!(contents["uri"], uri, "{what}");
                assert!(
                    contents["text"].as_str().unwrap().contains(wanted),
                    "{what}"
                );
                let scope = read.result().get("cacheScope");
                if era == Era::Modern {
                    assert_eq!(scope.unwrap(), "private", "{what}");
                    assert_eq!(read.result()["resultType"], "complete", "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn hidden_and_missing_resources_answer_alike_and_silence_is_no() {
    let gateway = Setup::new()
        .over("up", everything("modern").await)
        .yaml(SOME)
        .start()
        .await;
    for era in both() {
        for (roles, seen) in [
            (&[][..], &[][..]),
            (
                &["reader"][..],
                &[
                    "test://static-text",
                    "test://watched-resource",
                    "ui://test/widget.html",
                ][..],
            ),
            (&["templates"][..], &[][..]),
        ] {
            let caller = gateway.user("alice@acme").with(|token| token.roles(roles));
            let mut alice = caller.connect(era).await;
            let list = alice.request("resources/list", json!({})).await;
            assert_eq!(uris(list.result()), seen, "{era:?} {roles:?}");
            for uri in ["test://static-binary", "test://nowhere", "other://x"] {
                let answer = alice.request("resources/read", json!({"uri": uri})).await;
                assert_eq!(answer.status, 200, "{era:?} {uri}");
                assert_eq!(answer.code(), not_found(era), "{era:?} {uri}");
                assert_eq!(answer.error()["data"], json!({"uri": uri}));
                assert_eq!(answer.error()["message"], "Resource not found");
            }
            let through = alice
                .request("resources/read", json!({"uri": "test://template/1/data"}))
                .await;
            let may = !roles.is_empty();
            assert_eq!(
                through.message().get("result").is_some(),
                may,
                "{era:?} {roles:?}"
            );
        }
    }
    let mut bob = gateway.other_tenant().connect(Era::Modern).await;
    let list = bob.request("resources/list", json!({})).await;
    assert_eq!(uris(list.result()).len(), 4);
}

#[tokio::test]
async fn capabilities_name_what_the_caller_may_see_any_of() {
    let gateway = Setup::new()
        .over("up", everything("legacy").await)
        .yaml(SOME)
        .start()
        .await;
    for (roles, resources) in [(&[][..], false), (&["reader"][..], true)] {
        let caller = gateway.user("alice@acme").with(|token| token.roles(roles));
        let legacy = caller.connect(Era::Legacy).await;
        let told = &legacy.opening().result()["capabilities"];
        assert_eq!(told.get("resources").is_some(), resources, "{told}");
        assert!(
            told.get("prompts").is_some() && told.get("completions").is_some(),
            "{told}"
        );
        let mut modern = caller.connect(Era::Modern).await;
        let told = modern.request("server/discover", json!({})).await;
        let told = &told.result()["capabilities"];
        assert_eq!(told.get("resources").is_some(), resources, "{told}");
        if resources {
            assert_eq!(
                told["resources"],
                json!({"subscribe": true, "listChanged": true})
            );
        }
    }
}

#[tokio::test]
async fn a_link_in_a_result_is_read_where_it_came_from_and_by_nobody_else() {
    let gateway = Setup::new()
        .over("first", everything("modern").await)
        .over("second", everything("legacy").await)
        .yaml("upstreams: { second: { prefix: second_ } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway
            .user(&format!("alice{era:?}@acme"))
            .connect(era)
            .await;
        let read = json!({"uri": "test://linked"});
        let before = alice.request("resources/read", read.clone()).await;
        assert_eq!(before.code(), not_found(era));
        let link = alice.call("second_test_resource_link", json!({})).await;
        assert_eq!(link.result()["content"][0]["uri"], "test://linked");
        let after = alice.request("resources/read", read.clone()).await;
        assert_eq!(after.result()["contents"][0]["text"], "Linked.");
        let mut mallory = gateway.user("mallory@acme").connect(era).await;
        assert_eq!(
            mallory.request("resources/read", read).await.code(),
            not_found(era)
        );
    }
}

#[tokio::test]
async fn with_prefixes_every_uri_names_its_upstream() {
    let gateway = Setup::new()
        .over("first", everything("modern").await)
        .over("second", everything("legacy").await)
        .yaml("{ resources: { uri: prefix }, upstreams: { second: { prefix: second_ } } }")
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let list = alice.request("resources/list", json!({})).await;
        let uris = uris(list.result());
        assert_eq!(uris.len(), 8);
        assert!(uris.contains(&"test://second/static-text"), "{uris:?}");
        for id in ["first", "second"] {
            let uri = format!("test://{id}/static-text");
            let read = alice.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(read.result()["contents"][0]["uri"], uri, "{era:?}");
            let uri = format!("test://{id}/template/3/data");
            let read = alice.request("resources/read", json!({"uri": uri})).await;
            assert_eq!(read.result()["contents"][0]["uri"], uri, "{era:?}");
        }
        let plain = alice
            .request("resources/read", json!({"uri": "test://static-text"}))
            .await;
        assert_eq!(plain.code(), not_found(era));
        let link = alice.call("second_test_resource_link", json!({})).await;
        assert_eq!(link.result()["content"][0]["uri"], "test://second/linked");
        let tools = alice.list().await;
        let ui = tools
            .iter()
            .find(|tool| tool["name"] == "second_test_ui")
            .unwrap();
        assert_eq!(
            ui["_meta"]["ui"]["resourceUri"],
            "ui://second/test/widget.html"
        );
        let widget = json!({"uri": "ui://second/test/widget.html"});
        let widget = alice.request("resources/read", widget).await;
        assert_eq!(
            widget.result()["contents"][0]["mimeType"],
            "text/html;profile=mcp-app"
        );
    }
}

#[tokio::test]
async fn reads_are_recorded_where_the_operator_says_so_and_spend_the_budget_of_calls() {
    let gateway = Setup::new()
        .over("up", everything("modern").await)
        .yaml(
            r#"
            tenants:
              acme:
                audit_methods: ["resources/read"]
                limits: { per_user: { rate: 1/h, burst: 3 } }
            "#,
        )
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
    alice
        .request("resources/read", json!({"uri": "test://nowhere"}))
        .await;
    alice
        .request("prompts/get", json!({"name": "test_simple_prompt"}))
        .await;
    let limited = alice.request("resources/read", read).await;
    assert_eq!((limited.status.as_u16(), limited.code()), (429, 1429));
    let list = alice.request("resources/list", json!({})).await;
    assert_eq!(list.status, 200);
    let records = gateway.audit_of(&[], 3).await;
    let told: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            (text("tool"), text("outcome"))
        })
        .collect();
    for wanted in [
        ("resources/read test://static-text", "ok"),
        ("resources/read test://nowhere", "refused:visibility"),
        ("resources/read test://static-text", "refused:limit"),
    ] {
        let wanted = (wanted.0.to_owned(), wanted.1.to_owned());
        assert!(told.contains(&wanted), "{wanted:?} in {told:?}");
    }
    assert!(
        told.iter().all(|(tool, _)| !tool.contains("prompts/get")),
        "{told:?}"
    );
}

#[tokio::test]
async fn explain_says_why_a_resource_or_a_prompt_is_seen() {
    let gateway = Setup::new()
        .over("up", everything("legacy").await)
        .yaml(SOME)
        .start()
        .await;
    for (args, code, wanted) in [
        (
            &["--resource", "test://static-text", "--role", "reader"][..],
            0,
            "is allowed by the rule test://*",
        ),
        (&["--resource", "test://static-text"][..], 2, "is hidden"),
        (
            &["--resource", "test://static-binary", "--role", "reader"][..],
            2,
            "is denied by the rule",
        ),
        (
            &[
                "--resource",
                "test://template/9/data",
                "--role",
                "templates",
            ][..],
            0,
            "is allowed",
        ),
        (&["--prompt", "test_simple_prompt"][..], 0, "is allowed"),
        (
            &["--prompt", "none_such"][..],
            2,
            "no upstream of the tenant offers it now",
        ),
    ] {
        let said = gateway.outcome(&[&["explain", "--tenant", "acme"], args].concat());
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert!(said.stdout.contains(wanted), "{args:?}: {said:?}");
    }
}
