//! The authorization request: what it must refuse, and the way through the browser
//! to a code (RFC 6749 §4.1, RFC 7636, RFC 8707, RFC 9207).

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::loopback::{Listener, fields};
use super::registration::Client;
use super::report::Report;
use super::web::{Page, Web, form};
use super::{Known, Options};
use crate::clock;

const STEP: &str = "authorize";

/// A code and what belongs to it.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) code: String,
    pub(super) verifier: String,
}

fn random_text() -> String {
    URL_SAFE_NO_PAD.encode(clock::random::<32>())
}

fn challenge(verifier: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

fn url(known: &Known, query: &[(&str, &str)]) -> Option<String> {
    let endpoint = known
        .server
        .get("authorization_endpoint")
        .and_then(Value::as_str)?;
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    Some(format!("{endpoint}{joint}{}", form(query)))
}

/// Requests that a safe server does not let through.
pub(super) async fn refusals(web: &Web, known: &Known, client: &Client, report: &mut Report) {
    let challenge = challenge(&random_text());
    let base = [
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("state", "doctor"),
        ("resource", known.resource.as_str()),
        // Without one, some servers refuse for that and not for what is tried here.
        ("scope", known.scopes.as_deref().unwrap_or_default()),
    ];
    let pkce = [
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
    ];
    let foreign = "https://attacker.example/callback";
    let with = |more: &[(&'static str, &str)], pkce: &[(&'static str, &str)]| {
        let mut query: Vec<(&str, &str)> = base.to_vec();
        query.retain(|(_, value)| !value.is_empty());
        query.extend_from_slice(more);
        query.extend_from_slice(pkce);
        url(known, &query)
    };
    if let Some(url) = with(&[("redirect_uri", foreign)], &pkce) {
        let answer = web.get(&url, &[]).await;
        let sent = answer
            .as_ref()
            .is_ok_and(|page| place(page).is_some_and(|place| place.starts_with(foreign)));
        let shown = answer.is_ok_and(|page| (400..500).contains(&page.status));
        if sent {
            report.fail(STEP, "an unregistered redirect URI is sent the browser: codes can be stolen (RFC 6749 §3.1.2.4)");
        } else {
            report.prefer(
                STEP,
                shown,
                "an unregistered redirect URI is refused on the server's own page",
                "an unregistered redirect URI is not refused at once (RFC 6749 §3.1.2.4)",
            );
        }
    }
    let own = client.redirect_uri.as_str();
    if let Some(url) = with(&[("redirect_uri", own)], &[]) {
        let refused = web.get(&url, &[]).await.is_ok_and(|page| {
            let error = place(&page).is_some_and(|place| {
                place.starts_with(own) && place.contains("error=invalid_request")
            });
            error || (400..500).contains(&page.status)
        });
        report.prefer(
            STEP,
            refused,
            "a request without PKCE is refused",
            "a request without PKCE is not refused at once (OAuth 2.1 §4.1.1)",
        );
    }
}

fn place(page: &Page) -> Option<&str> {
    (300..400)
        .contains(&page.status)
        .then(|| page.header("location"))
        .flatten()
}

/// The code, by whoever sits at the browser, or at once where nobody is asked.
pub(super) async fn code(
    web: &Web,
    options: &Options,
    known: &Known,
    client: &Client,
    listener: Listener,
    report: &mut Report,
) -> Option<Code> {
    let (verifier, state) = (random_text(), random_text());
    let challenge = challenge(&verifier);
    let mut query = vec![
        ("response_type", "code"),
        ("client_id", client.id.as_str()),
        ("redirect_uri", client.redirect_uri.as_str()),
        ("state", state.as_str()),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", known.resource.as_str()),
    ];
    if let Some(scopes) = &known.scopes {
        query.push(("scope", scopes));
    }
    let url = url(known, &query)?;
    let page = match web.get(&url, &[("accept", "text/html,*/*")]).await {
        Ok(page) => page,
        Err(why) => {
            report.fail(
                STEP,
                format!("the authorization endpoint is not answered: {why}"),
            );
            return None;
        }
    };
    let returned = match place(&page) {
        Some(place) if place.starts_with(&client.redirect_uri) => {
            let query = place.split_once('?').map_or("", |(_, query)| query);
            report.note(STEP, "answered at once, without asking anybody");
            fields(query)
        }
        Some(_) => by_browser(&url, options, &listener, report).await?,
        None if page.status == 200 => {
            framing(&page, report);
            by_browser(&url, options, &listener, report).await?
        }
        None => {
            report.fail(
                STEP,
                format!(
                    "a request like that of a desktop client is refused: {}",
                    page.refusal()
                ),
            );
            return None;
        }
    };
    judge(&returned, &state, known, report).map(|code| Code { code, verifier })
}

fn framing(page: &Page, report: &mut Report) {
    let policy = page.header("content-security-policy").unwrap_or_default();
    let kept = policy.contains("frame-ancestors") || page.header("x-frame-options").is_some();
    report.prefer(
        STEP,
        kept,
        "its page cannot be framed by others",
        "its page may be framed by other sites: people can be tricked into a click (RFC 6749 §10.13)",
    );
}

async fn by_browser(
    url: &str,
    options: &Options,
    listener: &Listener,
    report: &mut Report,
) -> Option<HashMap<String, String>> {
    if !options.sign_in {
        report.ok(STEP, "the request of a desktop client is taken; a person goes on in the browser (--sign-in walks the rest)");
        return None;
    }
    report.note(STEP, "open this in a browser:");
    report.note(STEP, url);
    let returned = listener
        .returned(Duration::from_secs(options.patience))
        .await;
    if returned.is_none() {
        report.fail(
            STEP,
            format!(
                "nobody came back from the browser within {} s",
                options.patience
            ),
        );
    }
    returned
}

fn judge(
    returned: &HashMap<String, String>,
    state: &str,
    known: &Known,
    report: &mut Report,
) -> Option<String> {
    if let Some(error) = returned.get("error") {
        let words = returned.get("error_description").map_or("", String::as_str);
        report.fail(STEP, format!("the answer is an error: {error} {words}"));
        return None;
    }
    report.hold(
        STEP,
        returned.get("state").map(String::as_str) == Some(state),
        "`state` came back as it was sent",
        "`state` did not come back as it was sent: clients must refuse the answer (RFC 6749 §4.1.2)",
    );
    match returned.get("iss") {
        Some(issuer) if *issuer == known.issuer => report.ok(STEP, "`iss` names the issuer (RFC 9207)"),
        Some(issuer) => report.fail(STEP, format!("`iss` is {issuer:?} and not {:?}: clients must refuse the answer (RFC 9207 §2.4)", known.issuer)),
        None if known.promises_iss() => report.fail(STEP, "no `iss` in the answer, though the metadata promises it: clients must refuse the answer (RFC 9207 §2.4)"),
        None => report.warn(STEP, "no `iss` in the answer: Gemini CLI refuses it, and others cannot tell servers apart (RFC 9207)"),
    }
    let code = returned.get("code").cloned();
    if code.is_none() {
        report.fail(STEP, "the answer has neither a code nor an error");
    }
    code
}
