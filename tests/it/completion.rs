//! Completion of arguments, in all four combinations of eras.

use super::support::{Helper, Setup, both, json};

#[tokio::test]
async fn arguments_of_prompts_and_templates_are_completed_by_their_owner() {
    for upstream in ["legacy", "modern"] {
        let server = Helper::example("upstream_everything", &["--era", upstream]).await;
        let gateway = Setup::new()
            .over("up", server)
            .yaml("{ resources: { uri: prefix }, upstreams: { up: { prefix: my_ } } }")
            .start()
            .await;
        for era in both() {
            let mut alice = gateway.user("alice@acme").connect(era).await;
            for reference in [
                json!({"type": "ref/prompt", "name": "my_test_prompt_with_arguments"}),
                json!({"type": "ref/resource", "uri": "test://up/template/{id}/data"}),
            ] {
                let params = json!({
                    "ref": reference, "argument": {"name": "arg1", "value": "part"},
                    "context": {"arguments": {"arg2": "x"}},
                });
                let answer = alice.request("completion/complete", params).await;
                let completion = &answer.result()["completion"];
                assert_eq!(
                    completion["values"],
                    json!(["party"]),
                    "{era:?} over {upstream}"
                );
                assert_eq!(completion["hasMore"], false);
            }
            let params = json!({
                "ref": {"type": "ref/resource", "uri": "test://nowhere/{id}"},
                "argument": {"name": "id", "value": ""},
            });
            assert_eq!(
                alice.request("completion/complete", params).await.code(),
                -32602
            );
        }
    }
}
