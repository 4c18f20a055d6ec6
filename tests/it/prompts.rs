//! Prompts, in all four combinations of eras.

use super::support::{Era, Gateway, Helper, Setup, both, json};

async fn everything(era: &str) -> Helper {
    Helper::example("upstream_everything", &["--era", era]).await
}

#[tokio::test]
async fn prompts_are_listed_and_got_under_their_exposed_names() {
    for upstream in ["legacy", "modern"] {
        let gateway = Setup::new()
            .over("up", everything(upstream).await)
            .yaml("upstreams: { up: { prefix: my_ } }")
            .start()
            .await;
        for era in both() {
            let what = format!("{era:?} over {upstream}");
            let mut alice = gateway.user("alice@acme").connect(era).await;
            let list = alice.request("prompts/list", json!({})).await;
            let prompts = list.result()["prompts"].as_array().unwrap();
            let simple = prompts
                .iter()
                .find(|prompt| prompt["name"] == "my_test_simple_prompt");
            let simple = simple.unwrap_or_else(|| panic!("{what}: {prompts:?}"));
            assert_eq!(simple["_meta"]["com.example/kept"], true, "{what}");
            assert_eq!(simple["title"], "Simple", "{what}");
            let arguments = json!({"arg1": "a", "arg2": "b"});
            let params = json!({"name": "my_test_prompt_with_arguments", "arguments": arguments});
            let got = alice.request("prompts/get", params).await;
            let text = &got.result()["messages"][0]["content"]["text"];
            assert_eq!(text, "Prompt with arguments: arg1='a', arg2='b'", "{what}");
            let unknown = alice
                .request("prompts/get", json!({"name": "test_simple_prompt"}))
                .await;
            assert_eq!(
                (unknown.status.as_u16(), unknown.code()),
                (200, -32602),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn hidden_and_missing_prompts_answer_alike_in_gets_and_completions() {
    let hide = r#"tenants: { acme: { prompts: { deny: ["*_image"] } } }"#;
    let gateway = Setup::new()
        .over("up", everything("modern").await)
        .yaml(hide)
        .start()
        .await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        let list = alice.request("prompts/list", json!({})).await;
        assert!(!list.body.contains("test_prompt_with_image"));
        let mut told = Vec::new();
        for name in ["test_prompt_with_image", "test_prompt_with_nothing"] {
            let got = alice.request("prompts/get", json!({"name": name})).await;
            let message = got.error()["message"]
                .as_str()
                .unwrap()
                .replace(name, "NAME");
            let complete = json!({
                "ref": {"type": "ref/prompt", "name": name},
                "argument": {"name": "a", "value": ""},
            });
            let complete = alice.request("completion/complete", complete).await;
            told.push((
                got.status,
                got.code(),
                message,
                complete.code(),
                complete.error()["message"].clone(),
            ));
        }
        assert_eq!(told[0], told[1], "{era:?}");
    }
}

#[tokio::test]
async fn malformed_requests_say_what_to_send() {
    let gateway = Gateway::over(everything("modern").await).await;
    let mut alice = gateway.user("alice@acme").connect(Era::Modern).await;
    for (method, params) in [
        ("prompts/get", json!({})),
        ("prompts/get", json!({"name": 5})),
        ("resources/read", json!({"uri": []})),
        ("resources/list", json!({"cursor": "made up"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}}),
        ),
        (
            "completion/complete",
            json!({"argument": {"name": "a", "value": "b"}}),
        ),
    ] {
        let answer = alice
            .prepare(method, params.clone())
            .without("mcp-name")
            .send()
            .await;
        assert_eq!(
            (answer.status.as_u16(), answer.code()),
            (200, -32602),
            "{method} {params}"
        );
    }
}
