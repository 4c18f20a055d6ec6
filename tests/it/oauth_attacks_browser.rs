//! What an attacker tries with a person's browser, and with what the person's own
//! identity provider says. Each test compares what the database holds before and after.

use super::support::browser::{Browser, Page};
use super::support::login_idp::LoginIdp;
use super::support::oauth::{body, post, register, signed_in, state, text};
use super::support::sign_in::{
    LOOPBACK, PASSWORD, WEB, desk, federated, federated_with, is_out, local, local_setup, rows, web,
};
use super::support::{Gateway, Value, json};

fn consent(gateway: &Gateway) -> String {
    format!("{}/oauth/consent", gateway.url())
}

/// Everything that the authorization server keeps.
fn kept(gateway: &Gateway) -> (String, String) {
    (state(gateway), rows(gateway))
}

fn leads_nowhere(page: &Page, what: &str) {
    assert!(
        page.status.is_client_error() && page.location().is_none(),
        "{what}: {page:?}"
    );
}

/// Approves, goes to the provider, and stops before our callback.
async fn back_from_provider(gateway: &Gateway, browser: &Browser) -> String {
    let page = browser.approve(&desk(gateway)).await;
    let page = browser.get(&page.location().unwrap()).await;
    page.location().unwrap()
}

#[tokio::test]
async fn consent_to_one_app_is_not_turned_into_consent_to_another() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&web(&gateway), "alice@acme.test").await;
    let before = kept(&gateway);
    // The page of the app that asks is answered with the flow of another app: what
    // the person read is what counts, whatever else is in the form.
    let asked = browser.open(&desk(&gateway)).await.field("flow");
    for (name, value) in [
        ("client_id", "other"),
        ("redirect_uri", "https://evil.example/cb"),
        ("scope", "mcp echo.use"),
        ("tenant", "globex"),
        ("resource", "https://evil.example/mcp"),
    ] {
        let fields = [("flow", &*asked), ("decision", "deny"), (name, value)];
        let out = browser
            .post(&consent(&gateway), &fields, gateway.url())
            .await;
        assert!(
            out.location().unwrap().starts_with(LOOPBACK),
            "{name}: {out:?}"
        );
        assert_eq!(
            out.sent("error").as_deref(),
            Some("access_denied"),
            "{name}"
        );
    }
    let twice = [
        ("flow", &*asked),
        ("flow", &*asked),
        ("decision", "approve"),
    ];
    leads_nowhere(
        &browser
            .post(&consent(&gateway), &twice, gateway.url())
            .await,
        "two flows",
    );
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn remembered_consent_is_of_no_use_to_another_redirect_app_scope_or_endpoint() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&web(&gateway), "alice@acme.test").await;
    assert!(
        is_out(&browser.open(&web(&gateway)).await),
        "it is remembered"
    );
    let before = kept(&gateway);
    for (what, ask) in [
        (
            "another redirect",
            web(&gateway).with("redirect_uri", "https://app.example.com/second"),
        ),
        ("more scopes", web(&gateway).with("scope", "mcp echo.use")),
        ("another app", desk(&gateway).with("client_id", "other")),
        ("an app on the computer", desk(&gateway)),
    ] {
        // Neither silently nor at once.
        let page = browser.open(&ask).await;
        assert_eq!(
            (page.status.as_u16(), page.location()),
            (200, None),
            "{what}"
        );
        let silent = browser.open(&ask.clone().with("prompt", "none")).await;
        assert_eq!(silent.sent("code"), None, "{what}: {silent:?}");
        assert_eq!(
            silent.sent("error").as_deref(),
            Some("consent_required"),
            "{what}"
        );
    }
    let foreign = web(&gateway).with("resource", &gateway.audience("/t/globex/mcp"));
    let silent = browser.open(&foreign.with("prompt", "none")).await;
    assert_eq!(silent.sent("code"), None, "another tenant: {silent:?}");
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn a_planted_session_does_not_sign_the_victim_in_as_the_attacker() {
    let gateway = local().await;
    let (attacker, victim) = (Browser::new(), Browser::new());
    attacker.connect(&desk(&gateway), "bob@globex.test").await;
    victim.connect(&desk(&gateway), "alice@acme.test").await;
    let before = kept(&gateway);
    // The attacker's browser cookie over the victim's: the victim's own pages are void.
    let asked = victim.open(&desk(&gateway)).await.field("flow");
    let cookie = attacker.cookies()["toolgate-browser"].clone();
    victim.set_cookie("toolgate-browser", Some(&cookie));
    let fields = [("flow", &*asked), ("decision", "approve")];
    leads_nowhere(
        &victim
            .post(&consent(&gateway), &fields, gateway.url())
            .await,
        "a planted browser",
    );
    for cookie in ["", "x", "AAAA", &"A".repeat(4000)] {
        let stranger = Browser::new();
        stranger.set_cookie("toolgate-sign-in", Some(cookie));
        stranger.set_cookie("toolgate-browser", Some(cookie));
        let account = stranger.get(&format!("{}/account", gateway.url())).await;
        assert_eq!(account.status, 303, "{account:?}");
        let page = stranger.open(&web(&gateway).with("prompt", "none")).await;
        assert_eq!(page.sent("error").as_deref(), Some("login_required"));
    }
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn one_sealed_text_is_not_taken_for_another() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let before = kept(&gateway);
    let flow = browser.open(&desk(&gateway)).await.field("flow");
    let cookies = browser.cookies();
    let texts = [
        flow.clone(),
        cookies["toolgate-browser"].clone(),
        cookies["toolgate-sign-in"].clone(),
    ];
    // Each in the place of each other: as form, as who is signed in, as browser.
    for sealed in &texts[1..] {
        let fields = [("flow", sealed.as_str()), ("decision", "approve")];
        leads_nowhere(
            &browser
                .post(&consent(&gateway), &fields, gateway.url())
                .await,
            "a cookie as a flow",
        );
    }
    for (name, sealed) in [
        ("toolgate-sign-in", &texts[0]),
        ("toolgate-sign-in", &texts[1]),
        ("toolgate-browser", &texts[0]),
        ("toolgate-browser", &texts[2]),
    ] {
        let other = browser.copy();
        other.set_cookie(name, Some(sealed));
        let fields = [("flow", &*flow), ("decision", "approve")];
        let page = if name == "toolgate-browser" {
            other.post(&consent(&gateway), &fields, gateway.url()).await
        } else {
            other.open(&web(&gateway).with("prompt", "none")).await
        };
        assert_eq!(page.sent("code"), None, "{name}: {page:?}");
    }
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn the_answer_of_one_sign_in_is_not_put_into_another() {
    // State and nonce swaps: the attacker's code in the victim's way back, both ways.
    let idp = LoginIdp::serve().await;
    let gateway = federated(&idp).await;
    let (attacker, victim) = (Browser::new(), Browser::new());
    let part = |url: &str, name: &str| {
        let url = reqwest::Url::parse(url).unwrap();
        let mut pairs = url.query_pairs();
        pairs.find(|(n, _)| n == name).unwrap().1.into_owned()
    };
    let (his, hers) = (
        back_from_provider(&gateway, &attacker).await,
        back_from_provider(&gateway, &victim).await,
    );
    let before = kept(&gateway);
    let swapped = hers.replace(&part(&hers, "code"), &part(&his, "code"));
    // The provider holds the code against the challenge and refuses; the app of the
    // victim is told no, and gets no code.
    let page = victim.get(&swapped).await;
    assert_eq!(
        (page.sent("code"), page.sent("error").as_deref()),
        (None, Some("access_denied")),
        "the attacker's code with the victim's state: {page:?}"
    );
    assert_eq!(kept(&gateway), before);
    let page = victim.get(&his).await;
    leads_nowhere(&page, "the attacker's whole answer");
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn one_providers_answer_is_not_taken_for_anothers() {
    // Mix-up: both providers are trusted; the second one's answer comes back on the
    // way that was begun with the first, with and without a name.
    let (one, other) = (LoginIdp::serve().await, LoginIdp::serve().await);
    let gateway = federated(&one).await;
    for back in [
        vec![("iss", other.issuer().to_owned())],
        vec![("code", "code-of-the-other".to_owned())],
        vec![
            ("iss", one.issuer().to_owned()),
            ("code", "code-of-the-other".to_owned()),
        ],
    ] {
        one.script(|script| script.back = back);
        let browser = Browser::new();
        let url = back_from_provider(&gateway, &browser).await;
        let page = browser.get(&url).await;
        assert!(page.sent("code").is_none(), "{page:?}");
        assert_eq!(rows(&gateway), "0 0 0");
    }
    assert!(other.exchanged().is_empty(), "no code went to the other");
}

#[tokio::test]
async fn a_provider_cannot_put_people_into_tenants_or_make_them_somebody_else() {
    let idp = LoginIdp::serve().await;
    let gateway = federated_with(&idp, &["acme"], "{}").await;
    for (what, claims) in [
        (
            "another tenant",
            json!({"sub": "alice-at-idp", "tenant": "globex"}),
        ),
        (
            "no such tenant",
            json!({"sub": "alice-at-idp", "tenant": "evil"}),
        ),
        (
            "a list",
            json!({"sub": "alice-at-idp", "tenant": ["globex", "evil"]}),
        ),
        (
            "an object",
            json!({"sub": "alice-at-idp", "tenant": {"acme": true}}),
        ),
        ("no subject", json!({"sub": "", "tenant": "acme"})),
        (
            "a subject that is no text",
            json!({"sub": 1, "tenant": "acme"}),
        ),
    ] {
        idp.script(|script| script.claims = claims);
        let browser = Browser::new();
        let url = back_from_provider(&gateway, &browser).await;
        let page = browser.get(&url).await;
        assert_eq!(page.sent("code"), None, "{what}: {page:?}");
        let (_, grants) = (
            state(&gateway),
            gateway.database().psql("SELECT count(*) FROM oauth_grants"),
        );
        assert_eq!(grants.trim(), "0", "{what}");
    }
}

#[tokio::test]
async fn no_page_sends_a_browser_where_a_stranger_wants() {
    let gateway = local().await;
    let before = kept(&gateway);
    let evil = "https%3A%2F%2Fevil.example%2F";
    for path in [
        format!("/account?done={evil}&next={evil}&return_to={evil}"),
        format!("/oauth/login?next={evil}&redirect_uri={evil}&return={evil}"),
        format!("/oauth/callback?state=x&code=y&redirect_uri={evil}"),
        format!("/oauth/callback?error=access_denied&error_uri={evil}"),
        format!("/oauth/authorize?redirect_uri={evil}"),
        format!("/oauth/authorize?client_id=desk&redirect_uri={evil}&response_type=code"),
        format!("/oauth/authorize?client_id=nobody&redirect_uri={evil}&error=x"),
        format!("//evil.example/..;/oauth/login?next={evil}"),
        "/%2f%2fevil.example".to_owned(),
        "/\\evil.example".to_owned(),
    ] {
        let page = Browser::new()
            .get(&format!("{}{path}", gateway.url()))
            .await;
        let to = page.location().unwrap_or_default();
        assert!(
            to.is_empty() || to.starts_with(&format!("{}/", gateway.url())),
            "{path}: {to}"
        );
        assert!(!page.body.contains("href=\"https://evil"), "{path}");
        assert!(!page.body.contains("http-equiv"), "{path}");
    }
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn a_form_that_another_site_sends_changes_nothing_anywhere() {
    let gateway = local().await;
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let asked = browser
        .approve(&desk(&gateway).with("prompt", "login"))
        .await;
    let sign_in = asked.field("flow");
    let acting = browser
        .get(&format!("{}/account", gateway.url()))
        .await
        .field("token");
    let before = kept(&gateway);
    let login = [
        ("flow", &*sign_in),
        ("username", "alice@acme.test"),
        ("password", PASSWORD),
    ];
    for (path, fields) in [
        ("/oauth/login", &login[..]),
        ("/account/revoke", &[("token", &*acting), ("grant", "all")]),
        ("/account/sign-out", &[("token", &*acting)]),
    ] {
        for headers in [
            vec![("origin", "https://evil.example")],
            vec![("origin", "null")],
            vec![("origin", "")],
            vec![("sec-fetch-site", "cross-site")],
            vec![("sec-fetch-site", "same-site")],
            vec![("origin", gateway.url()), ("sec-fetch-site", "cross-site")],
        ] {
            let url = format!("{}{path}", gateway.url());
            let page = browser.post_with(&url, fields, &headers).await;
            assert_eq!(page.status, 403, "{path} {headers:?}: {page:?}");
        }
        // And by a link, with everything that the form has.
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(fields);
        let link = format!("{}{path}?{}", gateway.url(), query.finish());
        let page = browser.get(&link).await;
        assert!(page.sent("code").is_none(), "{path}");
        assert!(!page.body.contains("disconnected"), "{path}");
    }
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn a_form_is_a_form_and_nothing_that_scripts_of_other_sites_may_send() {
    let gateway = local().await;
    let browser = Browser::new();
    let flow = browser.open(&desk(&gateway)).await.field("flow");
    let before = kept(&gateway);
    let cookie: Vec<String> = browser
        .cookies()
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    for kind in [
        "application/json",
        "text/plain",
        "multipart/form-data; boundary=x",
    ] {
        let answer = gateway
            .http()
            .post(consent(&gateway))
            .header("content-type", kind)
            .header("cookie", cookie.join("; "))
            .body(format!("flow={flow}&decision=approve"))
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 415, "{kind}");
    }
    let long = "x".repeat(70_000);
    let fields = [("flow", &*flow), ("decision", "approve"), ("pad", &*long)];
    let page = browser
        .post(&consent(&gateway), &fields, gateway.url())
        .await;
    assert_eq!(page.status, 413);
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn headers_that_a_stranger_sends_change_no_address_of_ours() {
    let gateway = local_setup()
        .await
        .yaml(r#"server: { public_url: "https://gw.example.com" }"#)
        .start()
        .await;
    let before = kept(&gateway);
    for (name, value) in [
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
        ("forwarded", "host=evil.example;proto=http"),
        ("x-forwarded-proto", "http"),
        ("x-original-url", "/oauth/consent"),
        ("x-rewrite-url", "/account"),
    ] {
        for path in [
            "/.well-known/oauth-authorization-server",
            "/oauth/login",
            "/account",
        ] {
            let answer = gateway
                .http()
                .get(format!("{}{path}", gateway.url()))
                .header(name, value)
                .send()
                .await
                .unwrap();
            let headers = format!("{:?}", answer.headers());
            let body = answer.text().await.unwrap();
            assert!(
                !headers.contains("evil.example"),
                "{path} {name}: {headers}"
            );
            assert!(!body.contains("evil.example"), "{path} {name}: {body}");
        }
    }
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn parameters_cannot_break_out_of_headers_or_pages() {
    let gateway = local().await;
    let before = kept(&gateway);
    for value in [
        "x\r\nSet-Cookie: toolgate-sign-in=evil",
        "x\nLocation: https://evil.example",
        "x\u{0}y",
        "\u{85}\u{2028}Set-Cookie: a=b",
        "\"><script>alert(1)</script>",
        "'; alert(1); //",
        "{{7777*7777}}${7777*7777}",
    ] {
        for name in [
            "state",
            "login_hint",
            "scope",
            "prompt",
            "nonce",
            "ui_locales",
        ] {
            let page = Browser::new().open(&desk(&gateway).with(name, value)).await;
            for line in page.headers.get_all("set-cookie") {
                let line = line.to_str().unwrap();
                assert!(line.starts_with("toolgate-browser="), "{name}: {line}");
            }
            assert!(!page.body.contains("<script>alert"), "{name}: {value:?}");
            assert!(!page.body.contains("60481729"), "{name}: {}", page.text());
            let to = page.location().unwrap_or(LOOPBACK.to_owned());
            assert!(to.starts_with(LOOPBACK), "{name}: {to}");
        }
    }
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn an_app_cannot_pass_for_another_by_its_name() {
    let gateway = local_setup()
        .await
        .yaml(r#"authorization_server: { registration: { allow_names: ["Codex*", "Desk*"] } }"#)
        .start()
        .await;
    let before = state(&gateway);
    for name in [
        "Claude Code",
        "codex",
        "\u{421}odex",
        "Co\u{200b}dex evil",
        " \u{202e}xedoC",
        "Evil Codex",
    ] {
        let metadata = json!({"client_name": name, "redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "none"});
        let page = register(&gateway, &metadata).await;
        // What is left of a name after its hidden letters are gone is what counts.
        let kept = serde_json::from_str::<Value>(&page.body).unwrap()["client_name"].clone();
        assert!(
            page.status == 400 || kept.as_str().unwrap().starts_with("Codex"),
            "{name:?}: {page:?}"
        );
    }
    assert!(state(&gateway) == before || state(&gateway).starts_with("1 clients"));
    // With an allowed name it is still another app, of no proven name.
    let metadata = json!({"client_name": "Desk App", "redirect_uris": [LOOPBACK, WEB], "token_endpoint_auth_method": "none"});
    let client = body(&register(&gateway, &metadata).await);
    let browser = Browser::new();
    browser.connect(&desk(&gateway), "alice@acme.test").await;
    let ask = desk(&gateway).with("client_id", text(&client, "client_id"));
    let page = browser.open(&ask).await;
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.text().contains("Name not verified"), "{}", page.text());
}

#[tokio::test]
async fn a_secret_is_compared_without_telling_how_much_of_it_was_right() {
    // Every wrong secret gets one answer, however near it is; the comparison itself
    // takes the same time for all (`secret::same`; the test below holds the source to it).
    let gateway = local().await;
    let metadata =
        json!({"redirect_uris": [LOOPBACK], "token_endpoint_auth_method": "client_secret_post"});
    let client = body(&register(&gateway, &metadata).await);
    let (id, secret) = (text(&client, "client_id"), text(&client, "client_secret"));
    let before = state(&gateway);
    let mut answers = Vec::new();
    for wrong in [
        "x".to_owned(),
        secret[..secret.len() - 1].to_owned(),
        format!("{secret}x"),
        format!("{}x", &secret[..secret.len() - 1]),
        secret.to_uppercase(),
        secret.to_lowercase() + "-",
        "\u{0}".to_owned(),
    ] {
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", "x"),
            ("client_id", id),
            ("client_secret", &*wrong),
        ];
        let page = post(&gateway, "/oauth/token", &fields).await;
        assert_eq!(page.status, 401, "{wrong:?}");
        answers.push(page.body);
    }
    assert!(
        answers.windows(2).all(|two| two[0] == two[1]),
        "{answers:?}"
    );
    assert_eq!(state(&gateway), before);
}

#[test]
fn secrets_are_compared_in_constant_time_in_the_source() {
    // No secret, code, state, nonce, verifier or digest is compared with `==`.
    let compared = regex::Regex::new(
        r"(?i)\b(secret|password|verifier|nonce|digest|code_digest|signature|mac)\b(\.\w+(\(\))?)*\s*(==|!=)\s*[^=]",
    )
    .unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let mut folders = vec![
        format!("{root}/oauth"),
        format!("{root}/http/oauth"),
        format!("{root}/seal"),
    ];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path.display().to_string());
                continue;
            }
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for line in text.lines() {
                let line = line.split("//").next().unwrap();
                assert!(!compared.is_match(line), "{}: {line}", path.display());
            }
        }
    }
    assert!(files > 30, "{files}");
    let same = std::fs::read_to_string(format!("{root}/secret.rs")).unwrap();
    assert!(same.contains("verify_slices_are_equal"));
}

#[tokio::test]
async fn a_wrong_password_costs_as_much_as_an_unknown_name() {
    // The work is the same: both compute one hash. Taken in turns, the quickest of
    // each counts, since the machine may be busy; without the hash an unknown name
    // would be answered many times faster.
    let gateway = local().await;
    let browser = Browser::new();
    let page = browser.approve(&desk(&gateway)).await;
    let before = kept(&gateway);
    let mut quickest = [std::time::Duration::MAX; 2];
    for _ in 0..8 {
        for (user, quickest) in ["alice@acme.test", "nobody@acme.test"]
            .into_iter()
            .zip(&mut quickest)
        {
            let given = [("username", user), ("password", "wrong")];
            let start = std::time::Instant::now();
            assert_eq!(browser.press(&page, "", &given).await.status, 403);
            *quickest = start.elapsed().min(*quickest);
        }
    }
    let [known, unknown] = quickest;
    assert!(
        known < unknown * 5 && unknown < known * 5,
        "{known:?} {unknown:?}"
    );
    assert_eq!(kept(&gateway), before);
}

#[tokio::test]
async fn an_id_token_and_a_providers_access_token_are_none_of_ours() {
    let gateway = local().await;
    let tokens = signed_in(&gateway, &desk(&gateway), "desk", "alice@acme.test").await;
    let before = state(&gateway);
    for (what, token) in [
        (
            "an ID token",
            gateway
                .idp()
                .token("alice@acme", &gateway.audience("/mcp"))
                .claim("nonce", "n")
                .sign(),
        ),
        (
            "an ID token by its hash",
            gateway
                .idp()
                .token("alice@acme", &gateway.audience("/mcp"))
                .claim("at_hash", "h")
                .sign(),
        ),
        (
            "a token for another resource",
            gateway
                .idp()
                .token("alice@acme", "https://other.example/mcp")
                .sign(),
        ),
    ] {
        assert_eq!(
            super::support::oauth::status_at(&gateway, "/mcp", &token).await,
            401,
            "{what}"
        );
        // Nor is it a refresh token, an assertion, or something to ask about.
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &*token),
            ("client_id", "desk"),
        ];
        assert_eq!(post(&gateway, "/oauth/token", &fields).await.status, 400);
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", &*token),
            ("client_id", "desk"),
        ];
        assert_eq!(post(&gateway, "/oauth/token", &fields).await.status, 400);
    }
    // Our own access token is no refresh token and no code.
    for (name, grant) in [
        ("refresh_token", "refresh_token"),
        ("code", "authorization_code"),
    ] {
        let fields = [
            ("grant_type", grant),
            (name, text(&tokens, "access_token")),
            ("client_id", "desk"),
            ("code_verifier", super::support::browser::VERIFIER),
        ];
        assert_eq!(
            post(&gateway, "/oauth/token", &fields).await.status,
            400,
            "{name}"
        );
    }
    assert_eq!(state(&gateway), before);
}
