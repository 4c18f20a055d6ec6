//! `admins`: who administers by what the identity provider says, as long as it says so.

use super::support::browser::Browser;
use super::support::login_idp::LoginIdp;
use super::support::sign_in::{LOOPBACK, desk, federated_with, local_setup, refresh, rows, tokens};
use super::support::{Gateway, Value, json};

const ADMINS: &str = r"
    admins:
      - { provider: company, claim: groups, value: mcp-admins, role: admin, tenant: acme }
      - { provider: company, claim: realm.teams, value: security, role: auditor }
      - { provider: users, claim: groups, value: mcp-admins, role: admin }
";

async fn account(gateway: &Gateway, browser: &Browser) -> String {
    let page = browser.get(&format!("{}/account", gateway.url())).await;
    if page.status == 200 {
        page.text()
    } else {
        format!("{}", page.status)
    }
}

/// Lets the provider be asked again: it is every five minutes at most.
fn due(gateway: &Gateway) {
    gateway.database().psql(
        "UPDATE oauth_sign_ins SET checked_at = checked_at - interval '1 hour';
         UPDATE oauth_grants SET checked_at = checked_at - interval '1 hour'",
    );
}

fn administers(acts: &[Value]) -> Vec<String> {
    let details = acts
        .iter()
        .map(|act| act["details"].as_str().unwrap_or("{}"));
    let details = details.map(|text| serde_json::from_str::<Value>(text).unwrap());
    details
        .map(|all| all["administers"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn a_person_administers_by_the_providers_claim_and_while_it_lasts() {
    let idp = LoginIdp::serve().await;
    idp.script(|script| {
        script.claims["groups"] = json!(["staff", "mcp-admins"]);
        // What the ID token leaves out may be in userinfo.
        script.userinfo = json!({"sub": "alice-at-idp", "realm": {"teams": ["security"]}});
    });
    let gateway = federated_with(&idp, &["acme"], ADMINS).await;
    let browser = Browser::new();
    browser.connect_through(&desk(&gateway)).await;
    let shown = account(&gateway, &browser).await;
    assert!(
        shown.contains("You are an administrator of acme."),
        "{shown}"
    );
    assert!(
        shown.contains("You are an auditor of all organisations."),
        "{shown}"
    );
    let acts = gateway.audit(&["--kind", "sign_in"]);
    assert_eq!(
        administers(&acts),
        ["admin of acme, auditor of *"],
        "{acts:?}"
    );

    // The claim goes: at the next look so does the role, and that is on record.
    idp.script(|script| script.claims["groups"] = json!(["staff"]));
    let shown = account(&gateway, &browser).await;
    assert!(shown.contains("administrator"), "not asked so soon");
    due(&gateway);
    let shown = account(&gateway, &browser).await;
    assert!(!shown.contains("administrator"), "{shown}");
    assert!(shown.contains("You are an auditor"), "{shown}");
    let acts = super::support::eventually("it is on record", async || {
        let acts = gateway.audit(&["--kind", "administration"]);
        (!acts.is_empty()).then_some(acts)
    })
    .await;
    assert_eq!(administers(&acts), ["auditor of *"], "{acts:?}");

    // A provider that is away takes nothing; one that knows nobody any more signs out.
    idp.script(|script| script.refusal = Some((503, "temporarily_unavailable")));
    due(&gateway);
    assert!(account(&gateway, &browser).await.contains("an auditor"));
    idp.script(|script| script.refusal = Some((400, "invalid_grant")));
    due(&gateway);
    assert_eq!(account(&gateway, &browser).await, "303 See Other");
    assert_eq!(
        rows(&gateway),
        "0 0 0",
        "sign-in, grant and family are gone"
    );
}

#[tokio::test]
async fn a_sign_in_without_an_app_is_looked_after_with_its_own_token() {
    let idp = LoginIdp::serve().await;
    idp.script(|script| script.claims["groups"] = json!("mcp-admins"));
    let gateway = federated_with(&idp, &["acme"], ADMINS).await;
    let browser = Browser::new();
    let page = browser.get(&format!("{}/oauth/login", gateway.url())).await;
    browser.follow(page, LOOPBACK).await;
    assert!(
        account(&gateway, &browser)
            .await
            .contains("an administrator of acme")
    );
    for _ in 0..2 {
        // The provider's tokens rotate: the second look needs the first one's.
        due(&gateway);
        assert!(
            account(&gateway, &browser)
                .await
                .contains("an administrator of acme")
        );
    }
    idp.script(|script| script.claims["groups"] = json!("nobody"));
    due(&gateway);
    assert!(!account(&gateway, &browser).await.contains("administrator"));
}

#[tokio::test]
async fn an_apps_refresh_brings_the_persons_sign_ins_up_to_date() {
    let idp = LoginIdp::serve().await;
    idp.script(|script| script.claims["groups"] = json!(["mcp-admins"]));
    let gateway = federated_with(&idp, &["acme"], ADMINS).await;
    let browser = Browser::new();
    let out = browser.connect_through(&desk(&gateway)).await;
    let tokens = tokens(&gateway, "desk", &out, LOOPBACK).await;
    assert!(account(&gateway, &browser).await.contains("administrator"));
    idp.script(|script| script.claims["groups"] = json!([]));
    due(&gateway);
    assert_eq!(refresh(&gateway, "desk", &tokens).await.status, 200);
    assert!(!account(&gateway, &browser).await.contains("administrator"));
}

#[tokio::test]
async fn local_users_administer_by_their_name_and_nobody_else_does() {
    let admins = r"
        admins:
          - { provider: users, claim: email, value: carol@both.test, role: admin }
          - { provider: users, claim: roles, value: support, role: auditor, tenant: acme }
    ";
    let gateway = local_setup().await.yaml(admins).start().await;
    for (user, words) in [
        (
            "carol@both.test",
            "You are an administrator of all organisations.",
        ),
        ("alice@acme.test", "You are an auditor of acme."),
        ("bob@globex.test", ""),
    ] {
        let browser = Browser::new();
        let page = browser.get(&format!("{}/oauth/login", gateway.url())).await;
        browser.sign_in(&page, user).await;
        let shown = account(&gateway, &browser).await;
        assert!(shown.contains(user) && shown.contains(words), "{shown}");
        assert!(
            !words.is_empty() || !shown.contains("You are an "),
            "{shown}"
        );
    }
}
