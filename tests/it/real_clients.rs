//! Real clients, each with a token in hand: they list tools and call one.

use super::support::{Gateway, Helper, real};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_list_and_call_tools() {
    let gateway = Gateway::over(Helper::everything().await).await;
    let alice = gateway.user("alice@acme");
    let mut failed = Vec::new();
    for (recipe, mode) in [
        ("ts-sdk-v1", ""),
        ("ts-client-v2", "legacy"),
        ("ts-client-v2", "auto"),
        ("ts-client-v2", "2026-07-28"),
        ("python", "auto"),
        ("python", "legacy"),
        ("inspector", "legacy"),
        ("inspector", "auto"),
        ("inspector", "modern"),
    ] {
        let verdict = real::client(recipe, &alice, &[("MODE", mode)]).await;
        if !verdict.starts_with("PASS ") {
            failed.push(verdict);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_clients_use_everything_in_each_era_over_upstreams_of_each() {
    let mut failed = Vec::new();
    for upstream in ["legacy", "modern"] {
        let server = Helper::example("upstream_everything", &["--era", upstream]).await;
        let gateway = Gateway::over(server).await;
        let alice = gateway.user("alice@acme");
        for recipe in ["ts-everything", "python-everything"] {
            for mode in ["legacy", "2026-07-28"] {
                let verdict = real::client(recipe, &alice, &[("MODE", mode)]).await;
                eprintln!("{verdict} (a {upstream} upstream)");
                if !verdict.starts_with("PASS ") {
                    failed.push(format!("{verdict} (a {upstream} upstream)"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
