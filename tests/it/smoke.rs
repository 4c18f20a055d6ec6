//! The shortest way through everything: sign in, list, call, find the record.

use super::support::{Era, Gateway, Helper, both, json};

#[tokio::test]
async fn a_user_lists_and_calls_a_tool_and_the_call_is_on_record() {
    let gateway = Gateway::over(Helper::example("upstream_rmcp", &[]).await).await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        assert!(alice.names().await.contains(&"echo".to_owned()), "{era:?}");
        assert_eq!(
            alice.call("echo", json!({"text": "hello"})).await.text(),
            "hello",
            "{era:?}"
        );
    }
    let records = gateway.audit_of(&["--tool", "echo"], 2).await;
    assert!(
        records.iter().all(|record| record["outcome"] == "ok"),
        "{records:?}"
    );
}

#[tokio::test]
async fn a_caller_without_a_token_is_told_where_to_get_one() {
    let gateway = Gateway::start("").await;
    for method in ["POST", "GET", "HEAD", "DELETE"] {
        let answer = gateway.anonymous().raw(method, &[], "").await;
        assert_eq!(answer.status, 401, "{method}");
        let challenge = answer.header("www-authenticate").unwrap();
        assert!(
            challenge.contains("resource_metadata="),
            "{method}: {challenge}"
        );
    }
}

#[tokio::test]
async fn the_server_ends_when_asked_to_and_starts_again() {
    let mut gateway = Gateway::start("").await;
    let status = gateway.sigterm_and_wait().await;
    assert!(status.success(), "{status}");
    gateway.start_again().await;
    assert_eq!(gateway.admin_status("/healthz").await, Some(200));
}

#[tokio::test]
async fn a_session_that_was_ended_is_unknown() {
    let gateway = Gateway::start("").await;
    let mut alice = gateway.user("alice@acme").connect(Era::Legacy).await;
    assert_eq!(alice.delete().await.status, 204);
    assert_eq!(alice.request("ping", json!({})).await.status, 404);
}
