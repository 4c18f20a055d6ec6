//! Tokens: the exchange of the code, what they open, and whether they can be
//! refreshed (RFC 6749 §4.1.3, §5, §6; OAuth 2.1 §4.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Known;
use super::authorize::Code;
use super::registration::Client;
use super::report::Report;
use super::web::{Page, Web, form};
use crate::clock::{Clock as _, SystemClock};
use crate::jose::SigningKey;
use crate::oauth::ASSERTION_TYPE;
use crate::secret::Secret;

const STEP: &str = "token";

/// What the token endpoint gave.
#[derive(Debug)]
pub(super) struct Tokens {
    access: Secret<String>,
    refresh: Option<Secret<String>>,
}

impl Tokens {
    /// Whether there is one to refresh with.
    pub(super) fn has_refresh(&self) -> bool {
        self.refresh.is_some()
    }
}

/// Trades the code in, and tries to do so a second time.
pub(super) async fn exchange(
    web: &Web,
    known: &Known,
    client: &Client,
    code: &Code,
    report: &mut Report,
) -> Option<Tokens> {
    let wrong = [
        ("grant_type", "authorization_code"),
        ("code", "not-a-code"),
        ("code_verifier", code.verifier.as_str()),
        ("redirect_uri", client.redirect_uri.as_str()),
    ];
    if let Some(Ok(page)) = ask(web, known, client, &wrong).await {
        let error = page
            .object()
            .and_then(|object| object.get("error")?.as_str().map(str::to_owned));
        report.prefer(
            STEP,
            page.status == 400 && error.as_deref() == Some("invalid_grant"),
            "a wrong code is 400 `invalid_grant`",
            &format!("a wrong code is answered with {} in the place of 400 invalid_grant (RFC 6749 §5.2)", page.refusal()),
        );
    }
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code.code.as_str()),
        ("code_verifier", code.verifier.as_str()),
        ("redirect_uri", client.redirect_uri.as_str()),
        ("resource", known.resource.as_str()),
    ];
    let page = match ask(web, known, client, &fields).await? {
        Ok(page) => page,
        Err(why) => {
            report.fail(STEP, format!("the token endpoint is not answered: {why}"));
            return None;
        }
    };
    judge(&page, report)
}

pub(super) fn judge(page: &Page, report: &mut Report) -> Option<Tokens> {
    if page.status != 200 {
        report.fail(STEP, format!("the code is not taken: {}", page.refusal()));
        return None;
    }
    let document = page.object()?;
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    let Some(access) = text("access_token") else {
        report.fail(STEP, "the answer has no `access_token`");
        return None;
    };
    report.ok(STEP, "there is a token");
    report.prefer(
        STEP,
        text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")),
        "`token_type` is Bearer",
        "`token_type` is not Bearer (RFC 6749 §5.1)",
    );
    let kept = page.header("cache-control").unwrap_or_default();
    report.prefer(
        STEP,
        kept.contains("no-store"),
        "the answer may not be cached",
        "`Cache-Control: no-store` is missing (RFC 6749 §5.1)",
    );
    if !document.contains_key("expires_in") {
        report.warn(
            STEP,
            "`expires_in` is missing: clients cannot refresh ahead of time",
        );
    }
    Some(Tokens {
        access: Secret::new(access.to_owned()),
        refresh: text("refresh_token").map(|token| Secret::new(token.to_owned())),
    })
}

pub(super) async fn ask(
    web: &Web,
    known: &Known,
    client: &Client,
    fields: &[(&str, &str)],
) -> Option<Result<Page, String>> {
    let endpoint = known.server.get("token_endpoint").and_then(Value::as_str)?;
    let mut fields = fields.to_vec();
    let secret = client.secret.as_ref().map_or("", |secret| secret.expose());
    let (basic, assertion);
    let mut headers = Vec::new();
    if let Some(key) = &client.key {
        assertion = signed(known, client, key)?;
        fields.push(("client_id", client.id.as_str()));
        fields.push(("client_assertion_type", ASSERTION_TYPE));
        fields.push(("client_assertion", assertion.as_str()));
    } else if client.method == "client_secret_basic" {
        // RFC 6749 §2.3.1: both are form-encoded first.
        let pair = |text: &str| form(&[("", text)]).trim_start_matches('=').to_owned();
        basic = format!(
            "Basic {}",
            STANDARD.encode(format!("{}:{}", pair(&client.id), pair(secret)))
        );
        headers.push(("authorization", basic.as_str()));
    } else {
        fields.push(("client_id", client.id.as_str()));
        if client.method == "client_secret_post" {
            fields.push(("client_secret", secret));
        }
    }
    Some(web.form(endpoint, &headers, &fields).await)
}

/// A client's own assertion (RFC 7523 §2.2); its audience is the issuer.
fn signed(known: &Known, client: &Client, key: &SigningKey) -> Option<String> {
    let now = SystemClock.unix_seconds();
    let claims = json!({
        "iss": client.id, "sub": client.id, "aud": known.issuer, "iat": now, "exp": now + 60,
        "jti": crate::clock::random::<16>().map(|byte| format!("{byte:02x}")).concat(),
    });
    key.sign(claims.as_object()?, "JWT").ok()
}

/// Whether the token opens the endpoint: the tools are listed.
pub(super) async fn tools(web: &Web, url: &str, tokens: &Tokens, report: &mut Report) {
    let bearer = format!("Bearer {}", tokens.access.expose());
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "toolgate-doctor", "version": env!("CARGO_PKG_VERSION")},
    });
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
    let page = match web.post(url, &headers, body.to_string()).await {
        Ok(page) => page,
        Err(why) => return report.fail("tools", format!("the endpoint is not answered: {why}")),
    };
    let listed = page.message().and_then(|message| {
        let tools = message.get("result")?.get("tools")?.as_array()?;
        Some(tools.len())
    });
    match (listed, page.status) {
        (Some(count), _) => report.ok("tools", format!("the token opens the endpoint: {count} tools")),
        (None, 401 | 403) => report.fail("tools", format!("{}: the endpoint does not take the token that its own authorization server issued", page.status)),
        (None, 400) => report.ok("tools", "the token is taken; the endpoint does not speak 2026-07-28, clients go on as 2025-11-25"),
        (None, status) => report.warn("tools", format!("{status} and no list of tools")),
    }
}

/// Whether a person stays signed in.
pub(super) async fn refresh(
    web: &Web,
    known: &Known,
    client: &Client,
    tokens: &Tokens,
    report: &mut Report,
) {
    let Some(refresh) = &tokens.refresh else {
        return report.warn(
            "refresh",
            "no refresh token: people sign in again whenever a token ends",
        );
    };
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.expose().as_str()),
        ("resource", known.resource.as_str()),
    ];
    let (first, second) = (
        ask(web, known, client, &fields).await,
        ask(web, known, client, &fields).await,
    );
    match first {
        Some(Ok(page)) if page.status == 200 => {
            let document = page.object().unwrap_or_default();
            let rotated = document.get("refresh_token").and_then(Value::as_str);
            let new = rotated.is_some_and(|new| new != refresh.expose());
            report.ok(
                "refresh",
                if new {
                    "refreshed, and the refresh token rotates"
                } else {
                    "refreshed"
                },
            );
        }
        Some(Ok(page)) => {
            return report.fail(
                "refresh",
                format!("a refresh is refused: {}", page.refusal()),
            );
        }
        Some(Err(why)) => {
            return report.fail("refresh", format!("a refresh is not answered: {why}"));
        }
        None => return,
    }
    let again = matches!(second, Some(Ok(page)) if page.status == 200);
    report.prefer(
        "refresh",
        again,
        "a refresh that is repeated at once is taken: a lost answer logs nobody out",
        "a refresh that is repeated at once is refused: clients that race or lose an answer are logged out",
    );
}
