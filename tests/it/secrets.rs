//! Secrets stay where they belong: with the log at its most verbose, through sign-ins,
//! calls, every kind of refusal, a refused reload, commands and the end of the service,
//! none of them stands in what is printed, in metrics, in error bodies and pages, or in
//! the database, in whatever form. The suite's last step (`tests/secrets.py`) looks for
//! the secrets of all other tests in all other servers' output.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::support::browser::{Ask, Browser, Page};
use super::support::login_idp::{LoginIdp, SECRET};
use super::support::oauth::{exchange, post, post_with};
use super::support::sign_in::{LOOPBACK, PASSWORD, desk, local, refresh, tokens};
use super::support::{Era, Gateway, Helper, Value, both, folder::Folder, json, sign_in};

/// Secrets by what they are.
#[derive(Debug, Default)]
struct Secrets(Vec<(&'static str, String)>);

impl Secrets {
    fn add(&mut self, what: &'static str, text: &str) {
        assert!(text.len() >= 9, "{what} would be found by chance: {text:?}");
        self.0.push((what, text.to_owned()));
    }

    /// A made-up one.
    fn made(&mut self, what: &'static str) -> String {
        let text = format!(
            "canary-{}-{}",
            what.replace(' ', "/"),
            self.0.len() * 7919 + 104_729
        );
        self.add(what, &text);
        text
    }

    /// Which of them stand in a text, in whatever form.
    fn within(&self, text: &str) -> Vec<&'static str> {
        let stands = |secret: &str| forms(secret).iter().any(|form| text.contains(form));
        let found = self.0.iter().filter(|(_, secret)| stands(secret));
        found.map(|(what, _)| *what).collect()
    }

    fn assert_none_in(&self, place: &str, text: &str) {
        let found = self.within(text);
        let lines = || {
            let lines = text.lines().filter(|line| !self.within(line).is_empty());
            lines.take(5).collect::<Vec<_>>().join("\n")
        };
        assert!(found.is_empty(), "{found:?} in {place}:\n{}", lines());
    }
}

/// What would give a secret away: itself, percent-encoded, hexadecimal, and base64 wherever
/// it begins in a longer text. Of a token its signature alone: what is before it is no secret
/// of itself, and often repeated.
fn forms(secret: &str) -> Vec<String> {
    let secret = match secret.rsplit_once('.') {
        Some((_, signature)) if secret.starts_with("eyJ") => signature,
        _ => secret,
    };
    let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let hex = secret
        .bytes()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let mut forms = vec![secret.to_owned(), encoded.replace('+', "%20"), encoded, hex];
    for before in 0..3 {
        let text = STANDARD.encode([vec![b'x'; before], secret.as_bytes().to_vec()].concat());
        let text = text.trim_end_matches('=');
        let (start, end) = ([0, 2, 3][before], [0, 1, 1][(before + secret.len()) % 3]);
        let inner = &text[start..text.len() - end];
        forms.push(inner.to_owned());
        forms.push(inner.replace('+', "-").replace('/', "_"));
    }
    forms
}

#[test]
fn a_secret_is_found_in_every_form() {
    let mut secrets = Secrets::default();
    secrets.add("a secret", "s\u{e9}cret/at:idp");
    for before in ["", "u:", "ab:", "abc:"] {
        let text = format!("{before}s\u{e9}cret/at:idp!");
        let percent: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
        for said in [STANDARD.encode(&text), percent, text] {
            assert_eq!(secrets.within(&said), ["a secret"], "{said}");
        }
    }
    assert!(secrets.within("nothing of it").is_empty());
}

/// Everything that a deployment is given in confidence, with the log at `trace`.
async fn deployment(idp: &LoginIdp, secrets: &mut Secrets) -> Gateway {
    let folder = Box::leak(Box::new(Folder::new()));
    secrets.add("the client secret at the provider", SECRET);
    let idp_secret = folder.file("idp", SECRET);
    let header = folder.file("header", &secrets.made("upstream header"));
    let redis = folder.file("redis", &secrets.made("redis password"));
    let nightly = folder.file("nightly", &secrets.made("client secret"));
    let gone = Helper::nowhere().config();
    let up = Helper::example("upstream_rmcp", &[]).await;
    let credentials = json!({"header": {"name": "X-Api-Key", "value_file": header}});
    let with = |mut upstream: Value| {
        upstream["credentials"] = credentials.clone();
        upstream
    };
    let over = json!({
        "telemetry": { "log_filter": "trace" },
        "redis": { "url": "redis://127.0.0.1:9", "password_file": redis, "timeout": "50ms" },
        "identity_providers": { "company": idp.config(idp_secret.to_str().unwrap(), &["acme"]) },
        "clients": { "nightly": {
            "secret_file": nightly, "grants": ["client_credentials"], "tenant": "acme", "scopes": ["mcp"],
            "introspection": true,
        } },
        "tools": null,
        "tenants": { "acme": { "audit": { "arguments": "digest" } } },
        "upstreams": { "up": with(up.config()), "gone": with(gone) },
    });
    let setup = sign_in::setup().await.yaml(&over.to_string());
    let mut gateway = setup.over("kept", up).start().await;
    // Its database is known only now.
    let url = gateway.database().url();
    let password = secrets.made("database password").replace('/', "%2F");
    let url = url.replace("toolgate@", &format!("toolgate:{password}@"));
    secrets.add("the database's password as it is written", &password);
    gateway.reload(&json!({"database": {"url": url}}).to_string());
    gateway.restart().await;
    let keys = std::fs::read_to_string(gateway.folder().path().join("keys")).unwrap();
    secrets.add("the deployment's key", keys.trim());
    gateway
}

/// Signs in, uses and misuses what that gives. What was answered to whoever was refused.
async fn sign_ins(gateway: &Gateway, secrets: &mut Secrets) -> Vec<String> {
    let browser = Browser::new();
    let out = browser.connect_through(&desk(gateway)).await;
    let code = out.sent("code").unwrap();
    let first = tokens(gateway, "desk", &out, LOOPBACK).await;
    let second: Value = serde_json::from_str(&refresh(gateway, "desk", &first).await.body).unwrap();
    secrets.add("an authorization code", &code);
    for tokens in [&first, &second] {
        secrets.add("an access token", tokens["access_token"].as_str().unwrap());
        secrets.add("a refresh token", tokens["refresh_token"].as_str().unwrap());
    }
    for value in browser.cookies().into_values() {
        secrets.add("a cookie", &value);
    }
    let mut refused = vec![browser.get(&format!("{}/account", gateway.url())).await];
    let client = secrets
        .0
        .iter()
        .find(|(what, _)| *what == "client secret")
        .unwrap()
        .1
        .clone();
    let basic = |secret: &str| {
        let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        format!("Basic {}", STANDARD.encode(format!("nightly:{encoded}")))
    };
    let machine = [("grant_type", "client_credentials")];
    let answer = post_with(
        gateway,
        "/oauth/token",
        &machine,
        &[("authorization", &basic(&client))],
    )
    .await;
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    secrets.add(
        "a machine's token",
        answer["access_token"].as_str().unwrap(),
    );
    let wrong = secrets.made("a wrong client secret");
    let access = first["access_token"].as_str().unwrap();
    let other = ("refresh_token", second["refresh_token"].as_str().unwrap());
    refused.push(
        post_with(
            gateway,
            "/oauth/token",
            &machine,
            &[("authorization", &basic(&wrong))],
        )
        .await,
    );
    refused.push(
        post_with(
            gateway,
            "/oauth/introspect",
            &[("token", access)],
            &[("authorization", &basic(&client))],
        )
        .await,
    );
    refused.push(post(gateway, "/oauth/token", &exchange("desk", &code)).await);
    refused.push(
        post(
            gateway,
            "/oauth/token",
            &[
                ("grant_type", "refresh_token"),
                other,
                ("client_id", "other"),
            ],
        )
        .await,
    );
    refused.push(
        post(
            gateway,
            "/oauth/revoke",
            &[("token", access), ("client_id", "desk")],
        )
        .await,
    );
    let asked = secrets.made("an unknown client");
    refused.push(
        Browser::new()
            .open(&Ask::new(gateway, &asked, LOOPBACK))
            .await,
    );
    secrets.0.retain(|(what, _)| *what != "an unknown client");
    refused.iter().map(said).collect()
}

fn said(page: &Page) -> String {
    format!("{:?}\n{}", page.headers, page.body)
}

/// Calls that work and calls that are refused at every step.
async fn calls(gateway: &Gateway, secrets: &mut Secrets) -> Vec<String> {
    let argument = secrets.made("an argument value");
    let mut refused = Vec::new();
    for era in both() {
        let caller = gateway.user("alice@acme");
        secrets.add("a token of the provider", caller.token());
        let mut session = caller.connect(era).await;
        if let (Era::Legacy, Some(id)) = (era, session.id()) {
            secrets.add("a session", id);
        }
        assert_eq!(
            session.call("echo", json!({"text": argument})).await.text(),
            argument
        );
        let wrong = session
            .call("echo", json!({"text": 5, "more": argument}))
            .await;
        refused.push(wrong.body.replace(&argument, "(what the caller sent)"));
        let unknown = session
            .call("no_such_tool", json!({"text": argument}))
            .await;
        refused.push(unknown.body);
    }
    let made_up = secrets.made("a made-up token");
    let http = gateway.http();
    let url = format!("{}/mcp", gateway.url());
    let token = gateway.user("alice@acme");
    secrets.add("a token of the provider", token.token());
    for (bearer, kind, body) in [
        (made_up.as_str(), "application/json", "{}".to_owned()),
        (token.token(), "application/json", format!("{{\"{argument}\": ")),
        (token.token(), "text/plain", argument.clone()),
        (token.token(), "application/json", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": argument}}).to_string()),
    ] {
        let header = secrets.made("a stray header");
        let answer = http
            .post(format!("{url}?access_token={made_up}"))
            .bearer_auth(bearer)
            .header("content-type", kind)
            .header("accept", "application/json, text/event-stream")
            .header("cookie", format!("session={header}"))
            .header("x-forwarded-authorization", &header)
            .body(body);
        let answer = answer.send().await.unwrap();
        refused.push(format!("{:?}\n{}", answer.headers().clone(), answer.text().await.unwrap()));
    }
    refused
}

/// All rows of all tables.
fn rows(gateway: &Gateway) -> String {
    gateway.database().psql(
        "SELECT query_to_xml(format('SELECT * FROM %I', relname), true, false, '') FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition",
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_printed_counted_answered_or_stored_at_the_most_verbose_log() {
    let (idp, mut secrets) = (LoginIdp::serve().await, Secrets::default());
    let mut gateway = deployment(&idp, &mut secrets).await;
    let mut answers = sign_ins(&gateway, &mut secrets).await;
    answers.extend(calls(&gateway, &mut secrets).await);
    // A changed file that is refused names keys, never values.
    let refused = secrets.made("a value in a wrong place");
    gateway.reload(
        &json!({"clients": {"nightly": {"secret": refused}}, "server": {"page_size": refused}})
            .to_string(),
    );
    let _ = gateway.logs().line_with("nightly").await;
    let commands: Vec<String> = [
        &["check"][..],
        &["doctor"],
        &["explain", "--tenant", "acme", "--tool", "echo"],
    ]
    .iter()
    .map(|args| format!("{:?}", gateway.outcome(args)))
    .collect();
    gateway.reload(
        &json!({"clients": {"nightly": {"secret": null}}, "server": {"page_size": 200}})
            .to_string(),
    );
    let more: Vec<String> = [
        &["check"][..],
        &["doctor", "--json"],
        &["keys", "list"],
        &["grants", "list", "--tenant", "acme"],
        &["audit", "search"],
        &["audit", "export"],
        &["audit", "verify"],
    ]
    .iter()
    .map(|args| format!("{:?}", gateway.outcome(args)))
    .collect();
    let metrics = gateway.metrics().await;
    let stored = rows(&gateway);
    gateway.sigterm_and_wait().await;
    let printed = gateway.logs().tail(usize::MAX);
    assert!(
        printed.contains("\"level\":\"TRACE\""),
        "the log is not at its most verbose"
    );
    secrets.assert_none_in("the log", &printed);
    secrets.assert_none_in("the metrics", &metrics);
    secrets.assert_none_in("the database", &stored);
    for said in commands.iter().chain(&more) {
        secrets.assert_none_in("what a command prints", said);
    }
    for answer in &answers {
        secrets.assert_none_in("an answer", answer);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_password_is_printed_or_stored() {
    let mut gateway = local().await;
    gateway.reload("telemetry: { log_filter: trace }");
    gateway.restart().await;
    let mut secrets = Secrets::default();
    secrets.add("a password", PASSWORD);
    let wrong = secrets.made("a wrong password");
    let browser = Browser::new();
    let page = browser.approve(&desk(&gateway)).await;
    let given = [("username", "alice@acme.test"), ("password", &*wrong)];
    let again = browser.press(&page, "", &given).await;
    secrets.assert_none_in("a page", &said(&again));
    let out = browser.sign_in(&again, "alice@acme.test").await;
    let given = [("username", "nobody@acme.test"), ("password", PASSWORD)];
    let other = Browser::new();
    let page = other.approve(&desk(&gateway)).await;
    let nobody = other.press(&page, "", &given).await;
    secrets.assert_none_in("a page", &said(&nobody));
    secrets.assert_none_in("a page", &said(&out));
    secrets.assert_none_in("the database", &rows(&gateway));
    gateway.sigterm_and_wait().await;
    secrets.assert_none_in("the log", &gateway.logs().tail(usize::MAX));
}
