//! What the authorization server does is on record, with who, for whom and why, and
//! without any secret.

use super::support::browser::{Ask, Browser};
use super::support::oauth::{
    body, code, exchange, post, refresh, refusal, register, signed_in, state, text,
};
use super::support::sign_in::{LOOPBACK, PASSWORD, desk, local, rows};
use super::support::{Gateway, Value, json};

async fn acts(gateway: &Gateway, kind: &str, count: usize) -> Vec<Value> {
    gateway.audit_of(&["--kind", kind], count).await
}

/// The act of this name.
fn named<'a>(acts: &'a [Value], action: &str) -> &'a Value {
    acts.iter()
        .find(|act| act["action"] == action)
        .unwrap_or_else(|| panic!("no {action}: {acts:?}"))
}

#[tokio::test]
async fn a_sign_in_its_consent_and_its_tokens_are_on_record_before_the_app_has_them() {
    let gateway = local().await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    // No waiting: what took effect is durable before it is told.
    let signed = gateway.audit(&["--kind", "sign_in"]);
    let consents = gateway.audit(&["--kind", "consent"]);
    let (signed, consent) = (named(&signed, "sign_in"), named(&consents, "approve"));
    for act in [signed, consent] {
        assert_eq!(act["outcome"], "ok", "{act}");
        assert_eq!(act["tenant"], "acme", "{act}");
        assert_eq!(act["client"], "desk", "{act}");
        assert_eq!(act["issuer"], gateway.audience(""), "{act}");
        assert_eq!(act["address"], "127.0.0.1", "{act}");
    }
    assert_eq!(signed["subject"], consent["subject"]);
    assert!(consent["details"].as_str().unwrap().contains("\"mcp\""));
    let tokens = body(&post(&gateway, "/oauth/token", &exchange("desk", &code)).await);
    let issued = gateway.audit(&["--kind", "token_issued"]);
    let issued = named(&issued, "authorization_code");
    assert_eq!(issued["subject"], consent["subject"], "{issued}");
    assert_eq!(issued["grant"], consent["grant"], "{issued}");
    let renewed = body(&refresh(&gateway, "desk", text(&tokens, "refresh_token"), &[]).await);
    let issued = gateway.audit(&["--kind", "token_issued"]);
    assert_eq!(named(&issued, "refresh_token")["client"], "desk");
    // No secret, and nobody's name or address, is in any of it.
    let all = Value::from(gateway.audit(&["--kind", "any"])).to_string();
    for secret in [
        code.as_str(),
        text(&tokens, "access_token"),
        text(&tokens, "refresh_token"),
        text(&renewed, "access_token"),
        text(&renewed, "refresh_token"),
        PASSWORD,
        "alice@acme.test",
        "state-of-the-client",
    ] {
        assert!(!all.contains(secret), "{secret} is on record");
    }
}

#[tokio::test]
async fn a_no_and_wrong_passwords_are_on_record() {
    let gateway = local().await;
    let browser = Browser::new();
    let page = browser.open(&desk(&gateway)).await;
    browser.press(&page, "deny", &[]).await;
    let denied = acts(&gateway, "consent", 1).await;
    let denied = named(&denied, "deny");
    assert_eq!(
        (&denied["outcome"], &denied["reason"], &denied["client"]),
        (&json!("refused"), &json!("denied"), &json!("desk"))
    );
    let page = browser.approve(&desk(&gateway)).await;
    for user in ["alice@acme.test", "nobody@acme.test"] {
        let given = [("username", user), ("password", "wrong horse")];
        browser.press(&page, "", &given).await;
    }
    let wrong = acts(&gateway, "sign_in", 2).await;
    for act in &wrong {
        assert_eq!(
            (&act["outcome"], &act["reason"]),
            (&json!("refused"), &json!("wrong_password"))
        );
        assert_eq!(act["address"], "127.0.0.1", "{act}");
    }
    let all = Value::from(gateway.audit(&["--kind", "any"])).to_string();
    assert!(
        !all.contains("wrong horse") && !all.contains("acme.test"),
        "{all}"
    );
}

#[tokio::test]
async fn what_ends_is_on_record_with_the_reason() {
    let gateway = local().await;
    let alice = async || signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    // A refresh token that is used again after its window.
    let tokens = alice().await;
    let token = text(&tokens, "refresh_token");
    refresh(&gateway, "desk", token, &[]).await;
    gateway
        .database()
        .psql("UPDATE oauth_families SET uses = ARRAY(SELECT u - 31000 FROM unnest(uses) u)");
    let replayed = refresh(&gateway, "desk", token, &[]).await;
    assert_eq!(refusal(&replayed), (400, "invalid_grant".to_owned()));
    // A code that is exchanged again.
    let again = code(&desk(&gateway), "alice@acme.test").await;
    for _ in 0..2 {
        post(&gateway, "/oauth/token", &exchange("desk", &again)).await;
    }
    // A client that ends its own token.
    let tokens = alice().await;
    for token in ["access_token", "refresh_token"] {
        let fields = [("token", text(&tokens, token)), ("client_id", "desk")];
        assert_eq!(post(&gateway, "/oauth/revoke", &fields).await.status, 200);
    }
    // A person on their own page, who then signs out.
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let account = format!("{}/account", gateway.url());
    for (path, grant) in [("/account/revoke", "all"), ("/account/sign-out", "")] {
        let flow = browser.get(&account).await.field("token");
        let fields = [("token", &*flow), ("grant", grant)];
        let url = format!("{}{path}", gateway.url());
        let done = browser.post(&url, &fields, gateway.url()).await;
        assert!(!done.status.is_client_error(), "{done:?}");
    }
    let ended = gateway.audit(&["--kind", "revocation"]);
    for action in [
        "refresh_token_replayed",
        "code_replayed",
        "token_revoked",
        "client_revoked",
        "account",
    ] {
        let act = named(&ended, action);
        assert_eq!(
            (&act["outcome"], &act["tenant"], &act["client"]),
            (&json!("ok"), &json!("acme"), &json!("desk")),
            "{act}"
        );
        assert!(act["details"].as_str().unwrap().contains("revoked"));
    }
    named(&gateway.audit(&["--kind", "sign_in"]), "sign_out");
    let refused = acts(&gateway, "token_issued", 1).await;
    assert!(
        refused
            .iter()
            .any(|act| act["outcome"] == "refused" && act["reason"] == "invalid_grant"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn registrations_are_on_record_made_or_refused() {
    let gateway = local().await;
    let metadata = json!({"redirect_uris": [LOOPBACK], "client_name": "New App", "token_endpoint_auth_method": "client_secret_post"});
    let client = body(&register(&gateway, &metadata).await);
    let made = gateway.audit(&["--kind", "registration"]);
    let made = named(&made, "register");
    assert_eq!(made["client"], client["client_id"], "{made}");
    assert!(made["details"].as_str().unwrap().contains("New App"));
    assert!(!made.to_string().contains(text(&client, "client_secret")));
    let evil = json!({"redirect_uris": ["http://evil.example/cb"]});
    register(&gateway, &evil).await;
    let refused = acts(&gateway, "registration", 2).await;
    assert!(
        refused
            .iter()
            .any(|act| act["reason"] == "invalid_redirect_uri"),
        "{refused:?}"
    );
    assert!(!Value::from(refused).to_string().contains("evil.example"));
}

/// As if the database's disk were full, for the record alone, until it is told.
fn full_disk(gateway: &Gateway, full: bool) {
    gateway.database().psql(if full {
        "CREATE OR REPLACE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER full_disk BEFORE INSERT ON audit_events
             FOR EACH STATEMENT EXECUTE FUNCTION full_disk()"
    } else {
        "DROP TRIGGER full_disk ON audit_events"
    });
}

#[tokio::test]
async fn what_cannot_be_put_on_record_is_not_done_and_the_same_again_does_it() {
    let gateway = local().await;
    let code = code(&desk(&gateway), "alice@acme.test").await;
    let tokens = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    let token = text(&tokens, "refresh_token");
    let (browser, person) = (Browser::new(), Browser::new());
    let page = browser.approve(&desk(&gateway)).await;
    person.connect(&desk(&gateway), "bob@globex.test").await;
    let account = format!("{}/account", gateway.url());
    let own = person.get(&account).await;
    let app = json!({"client_name": "App", "redirect_uris": [LOOPBACK]});
    let before = (state(&gateway), rows(&gateway));
    full_disk(&gateway, true);

    let out = browser.sign_in(&page, "alice@acme.test").await;
    assert_eq!(
        (out.status.as_u16(), out.location()),
        (503, None),
        "{out:?}"
    );
    let away = || (503, "temporarily_unavailable".to_owned());
    let exchanged = post(&gateway, "/oauth/token", &exchange("desk", &code)).await;
    assert_eq!(refusal(&exchanged), away(), "{exchanged:?}");
    assert!(!exchanged.body.contains("access_token"));
    let refreshed = refresh(&gateway, "desk", token, &[]).await;
    assert_eq!(refusal(&refreshed), away(), "{refreshed:?}");
    let fields = [("token", token), ("client_id", "desk")];
    let revoked = post(&gateway, "/oauth/revoke", &fields).await;
    assert_eq!(refusal(&revoked), away(), "{revoked:?}");
    assert_eq!(refusal(&register(&gateway, &app).await), away());
    let fields = [("token", &*own.field("token")), ("grant", "all")];
    let ended = person
        .post(&format!("{account}/revoke"), &fields, gateway.url())
        .await;
    assert_eq!(ended.status, 503, "{ended:?}");
    let ended = person
        .post(&format!("{account}/sign-out"), &fields, gateway.url())
        .await;
    assert_eq!(ended.status, 503, "{ended:?}");
    // What is refused is refused all the same: it waits for no record.
    let asked = Browser::new()
        .open(&Ask::new(&gateway, "nobody", LOOPBACK))
        .await;
    assert_eq!(asked.status, 400);
    assert_eq!(
        (state(&gateway), rows(&gateway)),
        before,
        "nothing was done"
    );

    full_disk(&gateway, false);
    let exchanged = post(&gateway, "/oauth/token", &exchange("desk", &code)).await;
    assert_eq!(
        exchanged.status, 200,
        "the code is still good: {exchanged:?}"
    );
    assert_eq!(refresh(&gateway, "desk", token, &[]).await.status, 200);
    assert_eq!(register(&gateway, &app).await.status, 201);
    let fields = [("token", token), ("client_id", "desk")];
    assert_eq!(post(&gateway, "/oauth/revoke", &fields).await.status, 200);
    let again = refresh(&gateway, "desk", token, &[]).await;
    assert_eq!(refusal(&again), (400, "invalid_grant".to_owned()));
    let issued = gateway.audit(&["--kind", "token_issued", "--outcome", "ok"]);
    let by = |action: &str| issued.iter().filter(|act| act["action"] == action).count();
    assert_eq!(
        (by("authorization_code"), by("refresh_token")),
        (2, 1),
        "{issued:?}"
    );
}

#[tokio::test]
async fn a_change_that_fails_after_its_record_is_corrected_there() {
    let gateway = local().await;
    let tokens = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    gateway.database().psql(
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'broken' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER broken BEFORE UPDATE ON oauth_families
             FOR EACH STATEMENT EXECUTE FUNCTION broken()",
    );
    let before = state(&gateway);
    let page = refresh(&gateway, "desk", text(&tokens, "refresh_token"), &[]).await;
    assert_eq!(refusal(&page), (503, "temporarily_unavailable".to_owned()));
    assert_eq!(state(&gateway), before);
    super::support::eventually("the record is put right", async || {
        let acts = gateway.audit(&["--kind", "token_issued"]);
        let failed = |act: &Value| act["action"] == "refresh_token" && act["outcome"] == "failed";
        acts.iter().any(failed).then_some(())
    })
    .await;
}
