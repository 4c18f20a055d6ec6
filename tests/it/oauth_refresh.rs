//! Refresh tokens: rotation, the window, reuse (rules §4.3, §4.5).

use super::support::oauth::{body, refresh, refusal, signed_in, state, status_at, text};
use super::support::sign_in::{claims, desk, local, local_setup};
use super::support::{Gateway, Value};

async fn alice(gateway: &Gateway) -> Value {
    signed_in(gateway, &desk(gateway), "desk", "alice@acme.test").await
}

/// Moves every first use of a refresh token so many seconds into the past.
fn age(gateway: &Gateway, seconds: u32) {
    let millis = u64::from(seconds) * 1000;
    gateway.database().psql(&format!(
        "UPDATE oauth_families SET uses = ARRAY(SELECT u - {millis} FROM unnest(uses) u)"
    ));
}

#[tokio::test]
async fn a_used_token_gives_the_newest_one_again_within_the_window() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    let first = alice(&gateway).await;
    let token = text(&first, "refresh_token");
    let second = body(&refresh(&gateway, "desk", token, &[]).await);
    assert_ne!(text(&second, "refresh_token"), token, "it rotates");
    assert_ne!(text(&second, "access_token"), text(&first, "access_token"));
    let again = body(&refresh(&replica, "desk", token, &[]).await);
    assert_eq!(
        text(&again, "refresh_token"),
        text(&second, "refresh_token")
    );
    let third = body(&refresh(&replica, "desk", text(&second, "refresh_token"), &[]).await);
    // The first is still in its window: it leads to the newest of all.
    let late = body(&refresh(&gateway, "desk", token, &[]).await);
    assert_eq!(text(&late, "refresh_token"), text(&third, "refresh_token"));
    assert_eq!(
        status_at(&gateway, "/mcp", text(&late, "access_token")).await,
        200
    );
}

#[tokio::test]
async fn after_the_window_a_used_token_ends_its_family_everywhere() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    let first = alice(&gateway).await;
    let other = alice(&gateway).await;
    let token = text(&first, "refresh_token");
    let second = body(&refresh(&gateway, "desk", token, &[]).await);
    let access = text(&second, "access_token").to_owned();
    assert_eq!(status_at(&replica, "/mcp", &access).await, 200);
    age(&gateway, 31);
    let families = || state(&gateway).matches(":true").count();
    assert_eq!(families(), 2);
    let replayed = refresh(&gateway, "desk", token, &[]).await;
    assert_eq!(refusal(&replayed), (400, "invalid_grant".to_owned()));
    assert_eq!(families(), 1, "the stolen one is gone, the other is not");
    let newest = refresh(&replica, "desk", text(&second, "refresh_token"), &[]).await;
    assert_eq!(refusal(&newest), (400, "invalid_grant".to_owned()));
    for at in [&gateway, &replica] {
        super::support::eventually("the access token ends", async || {
            (status_at(at, "/mcp", &access).await == 401).then_some(())
        })
        .await;
    }
    // Another sign-in of the same person through the same client goes on.
    assert_eq!(
        refresh(&gateway, "desk", text(&other, "refresh_token"), &[])
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn another_clients_try_changes_nothing() {
    let gateway = local().await;
    let tokens = alice(&gateway).await;
    let token = text(&tokens, "refresh_token");
    let before = state(&gateway);
    let stolen = refresh(&gateway, "other", token, &[]).await;
    assert_eq!(refusal(&stolen), (400, "invalid_grant".to_owned()));
    assert_eq!(state(&gateway), before);
    assert_eq!(refresh(&gateway, "desk", token, &[]).await.status, 200);
}

#[tokio::test]
async fn parallel_refreshes_over_two_replicas_log_nobody_out() {
    let gateway = local().await;
    let replica = gateway.replica().await;
    let mut token = text(&alice(&gateway).await, "refresh_token").to_owned();
    for _ in 0..3 {
        let tries = (0..12).map(|n| {
            refresh(
                if n % 2 == 0 { &gateway } else { &replica },
                "desk",
                &token,
                &[],
            )
        });
        let pages = futures_util::future::join_all(tries).await;
        let all: Vec<String> = pages
            .iter()
            .map(|page| {
                assert_eq!(page.status, 200, "{page:?}");
                text(&body(page), "refresh_token").to_owned()
            })
            .collect();
        assert!(
            all.iter().all(|one| *one == all[0]),
            "all get the same next one"
        );
        assert_ne!(all[0], token);
        token.clone_from(&all[0]);
    }
}

#[tokio::test]
async fn a_refresh_narrows_for_once_and_never_widens() {
    let gateway = local().await;
    let ask = desk(&gateway).with("scope", "mcp echo.use");
    let tokens = signed_in(&gateway, &ask, "desk", "alice@acme.test").await;
    let token = text(&tokens, "refresh_token");
    let narrow = body(&refresh(&gateway, "desk", token, &[("scope", "mcp")]).await);
    assert_eq!(
        (text(&narrow, "scope"), claims(&narrow)["scope"].as_str()),
        ("mcp", Some("mcp"))
    );
    let next = text(&narrow, "refresh_token");
    let whole = body(&refresh(&gateway, "desk", next, &[]).await);
    assert_eq!(text(&whole, "scope"), "mcp echo.use");

    let narrow = alice(&gateway).await;
    let wide = refresh(
        &gateway,
        "desk",
        text(&narrow, "refresh_token"),
        &[("scope", "mcp echo.use")],
    )
    .await;
    assert_eq!(refusal(&wide), (400, "invalid_scope".to_owned()));
}

#[tokio::test]
async fn a_leavers_grant_dies_at_the_next_refresh() {
    let mut gateway = local_setup().await.start().await;
    let tokens = alice(&gateway).await;
    gateway.reload(r#"users: { "alice@acme.test": null }"#);
    let token = text(&tokens, "refresh_token");
    super::support::eventually("the grant ends", async || {
        let page = refresh(&gateway, "desk", token, &[]).await;
        (refusal(&page).1 == "invalid_grant").then_some(())
    })
    .await;
    assert!(state(&gateway).contains("0 grants"), "{}", state(&gateway));
    super::support::eventually("the access token ends", async || {
        (status_at(&gateway, "/mcp", text(&tokens, "access_token")).await == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_is_no_refresh_token_of_ours_is_refused() {
    let gateway = local().await;
    let tokens = alice(&gateway).await;
    let good = text(&tokens, "refresh_token");
    let mut flipped = good.to_owned().into_bytes();
    flipped[30] = if flipped[30] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let before = state(&gateway);
    for token in [
        "x",
        &flipped,
        &good[..good.len() - 4],
        text(&tokens, "access_token"),
        &"A".repeat(100_000)[..60_000],
    ] {
        let page = refresh(&gateway, "desk", token, &[]).await;
        assert_eq!(refusal(&page), (400, "invalid_grant".to_owned()));
    }
    assert_eq!(state(&gateway), before);
}
