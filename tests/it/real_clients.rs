//! Real clients, each with a token in hand: they list tools and call one.

use super::support::{Gateway, Helper, Setup, eventually, real};

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
        let setup = Setup::new().over("up", server);
        let gateway = setup.yaml("server: { page_size: 10 }").start().await;
        let alice = gateway.user("alice@acme");
        let mut passed = 0;
        for (recipe, mode) in [
            ("ts-v1-everything", "legacy"),
            ("ts-v2-everything", "legacy"),
            ("ts-v2-everything", "2026-07-28"),
            ("python-everything", "legacy"),
            ("python-everything", "2026-07-28"),
        ] {
            let verdict = real::client(recipe, &alice, &[("MODE", mode)]).await;
            eprintln!("{verdict} (a {upstream} upstream)");
            if !verdict.starts_with("PASS ") {
                failed.push(format!("{verdict} (a {upstream} upstream)"));
                continue;
            }
            // What the client called off was called off here.
            passed += 1;
            let what = format!("{recipe} {mode} over {upstream}: the call is cancelled");
            eventually(&what, async || {
                let outcome = ["--tool", "slow_compute", "--outcome", "cancelled"];
                (gateway.audit(&outcome).len() >= passed).then_some(())
            })
            .await;
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
