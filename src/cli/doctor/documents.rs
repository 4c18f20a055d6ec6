//! The two documents: of the protected resource (RFC 9728) and of its
//! authorization server (RFC 8414, `OpenID` Connect Discovery).

use serde_json::{Map, Value};

use super::Known;
use super::challenge::Told;
use super::endpoint::{is_safe, parts};
use super::report::Report;
use super::web::{Page, Web};

const RESOURCE: &str = "resource";
const SERVER: &str = "server";
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The protected resource's document. Without one the walk goes on as 2025-03-26
/// had it: the authorization server is at the endpoint's origin.
pub(super) async fn resource(
    web: &Web,
    asked: &str,
    named: &str,
    told: &Told,
    report: &mut Report,
) -> Option<Known> {
    let (origin, path) = parts(asked)?;
    let mut places: Vec<String> = told.metadata.iter().cloned().collect();
    places.push(format!("{origin}{WELL_KNOWN}{path}"));
    places.push(format!("{origin}{WELL_KNOWN}"));
    let mut found = None;
    for (number, place) in places.iter().enumerate() {
        // Asked from within, the public place of the challenge may be out of reach.
        let page = web.get(place, &[("accept", "application/json")]).await;
        let document = page
            .as_ref()
            .ok()
            .filter(|page| page.status == 200)
            .and_then(Page::object);
        match (document, number) {
            (Some(document), _) if found.is_none() => found = Some((place.clone(), document)),
            (Some(document), _) => {
                let same = found.as_ref().is_some_and(|(_, first)| *first == document);
                if !same && number + 1 < places.len() {
                    report.fail(
                        RESOURCE,
                        format!("{place} says something else than {}", places.first()?),
                    );
                }
            }
            (None, 0) if told.metadata.is_some() && asked == named => report.fail(
                RESOURCE,
                format!(
                    "the place that the challenge names has no document: {place} ({})",
                    what(&page)
                ),
            ),
            (None, _) if number + 1 < places.len() => report.warn(
                RESOURCE,
                format!(
                    "no document at {place} ({}): Claude Code begins there",
                    what(&page)
                ),
            ),
            (None, _) => {}
        }
    }
    let Some((place, document)) = found else {
        report.warn(
            RESOURCE,
            "no protected resource metadata anywhere (RFC 9728): clients fall back to 2025-03-26 and take the endpoint's own origin for its authorization server",
        );
        return Some(Known {
            resource: named.to_owned(),
            scopes: told.scope.clone(),
            issuer: origin,
            guessed: true,
            ..Known::default()
        });
    };
    report.ok(RESOURCE, format!("metadata at {place}"));
    judge(named, told, &document, report)
}

fn judge(
    named: &str,
    told: &Told,
    document: &Map<String, Value>,
    report: &mut Report,
) -> Option<Known> {
    let resource = document
        .get("resource")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if resource == named {
        report.ok(
            RESOURCE,
            "`resource` is the endpoint's URL, character for character",
        );
    } else if covers(resource, named) {
        report.warn(RESOURCE, format!("`resource` is {resource:?}, which is above {named:?}: most clients take it, those that compare the two refuse to go on (RFC 9728 §3.3)"));
    } else {
        report.fail(RESOURCE, format!("`resource` is {resource:?} and not {named:?}: clients refuse to go on (RFC 9728 §3.3)"));
    }
    let servers = strings(document.get("authorization_servers"));
    let Some(issuer) = servers.first() else {
        report.fail(
            RESOURCE,
            "`authorization_servers` is missing or empty: no client knows where to sign in",
        );
        return None;
    };
    if servers.len() > 1 {
        report.note(
            RESOURCE,
            format!(
                "{} authorization servers; clients take the first, {issuer}",
                servers.len()
            ),
        );
    }
    let supported = strings(document.get("scopes_supported")).join(" ");
    let scopes = told
        .scope
        .clone()
        .or((!supported.is_empty()).then_some(supported));
    Some(Known {
        resource: if resource.is_empty() {
            named.to_owned()
        } else {
            resource.to_owned()
        },
        scopes,
        issuer: issuer.clone(),
        ..Known::default()
    })
}

/// The authorization server's document.
pub(super) async fn server(
    web: &Web,
    asked: &str,
    known: &mut Known,
    report: &mut Report,
) -> Option<()> {
    let issuer = known.issuer.clone();
    let Some((origin, path)) = parts(&issuer) else {
        report.fail(SERVER, format!("the issuer {issuer:?} is no URL"));
        return None;
    };
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    let mut missed = Vec::new();
    for place in &places {
        let place = within(asked, &issuer, place);
        let headers = [
            ("accept", "application/json"),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let page = web.get(&place, &headers).await;
        let Some(document) = page
            .as_ref()
            .ok()
            .filter(|page| page.status == 200)
            .and_then(Page::object)
        else {
            missed.push(format!("{place} ({})", what(&page)));
            continue;
        };
        report.ok(SERVER, format!("metadata at {place}"));
        if let Ok(page) = &page {
            browsers(page, report);
        }
        known.server = document;
        judge_server(&issuer, known, report);
        return Some(());
    }
    if known.guessed {
        return assumed(web, asked, &origin, known, report).await;
    }
    report.fail(
        SERVER,
        format!(
            "no metadata of the authorization server {issuer}; looked at {}",
            missed.join(", ")
        ),
    );
    None
}

/// The endpoints that revision 2025-03-26 takes where there are no documents (MCP
/// authorization 2025-03-26, Fallbacks for Servers without Metadata Discovery).
async fn assumed(
    web: &Web,
    asked: &str,
    origin: &str,
    known: &mut Known,
    report: &mut Report,
) -> Option<()> {
    let place = within(asked, origin, &format!("{origin}/authorize"));
    let page = web.get(&place, &[]).await;
    if page.as_ref().map_or(true, |page| page.status == 404) {
        report.fail(
            SERVER,
            format!(
                "neither metadata of an authorization server nor the endpoints that 2025-03-26 takes without: {origin}/authorize ({})",
                what(&page)
            ),
        );
        return None;
    }
    report.warn(
        SERVER,
        format!(
            "no metadata of an authorization server: clients that still do as 2025-03-26 take {origin}/authorize, /token and /register; others give up"
        ),
    );
    for (name, path) in [
        ("authorization_endpoint", "/authorize"),
        ("token_endpoint", "/token"),
        ("registration_endpoint", "/register"),
    ] {
        let url = Value::String(format!("{origin}{path}"));
        known.server.insert(name.to_owned(), url);
    }
    Some(())
}

/// The same origin is asked the way the endpoint was.
fn within(asked: &str, issuer: &str, place: &str) -> String {
    match (parts(asked), parts(issuer)) {
        (Some((inside, _)), Some((outside, _))) if !is_safe(asked) => {
            place.replacen(&outside, &inside, 1)
        }
        _ => place.to_owned(),
    }
}

fn browsers(page: &Page, report: &mut Report) {
    report.prefer(
        SERVER,
        page.header("access-control-allow-origin").is_some(),
        "readable by clients in a browser (CORS)",
        "no Access-Control-Allow-Origin on the metadata: clients that run in a browser (the Inspector's page) cannot read it",
    );
}

fn judge_server(issuer: &str, known: &Known, report: &mut Report) {
    let document = &known.server;
    let text = |key: &str| document.get(key).and_then(Value::as_str);
    report.hold(
        SERVER,
        text("issuer") == Some(issuer),
        "`issuer` is the one that the resource names",
        &format!("`issuer` is {:?} and not {issuer:?}: clients must refuse it (RFC 8414 §3.3); a slash at the end counts", text("issuer").unwrap_or_default()),
    );
    for key in ["authorization_endpoint", "token_endpoint"] {
        match text(key) {
            Some(url) if is_safe(url) => {}
            Some(url) => report.fail(SERVER, format!("`{key}` is at plain http: {url}")),
            None => report.fail(SERVER, format!("`{key}` is missing")),
        }
    }
    let lists = |key: &str, word: &str| strings(document.get(key)).iter().any(|each| each == word);
    report.hold(
        SERVER,
        lists("code_challenge_methods_supported", "S256"),
        "PKCE with S256 is advertised",
        "`code_challenge_methods_supported` lacks S256: clients must refuse to go on (MCP authorization, PKCE)",
    );
    if lists("code_challenge_methods_supported", "plain") {
        report.warn(
            SERVER,
            "`plain` PKCE is offered too: a downgrade that OAuth 2.1 does without",
        );
    }
    report.hold(
        SERVER,
        lists("response_types_supported", "code"),
        "the code flow is advertised",
        "`response_types_supported` lacks `code`",
    );
    let grants = document.get("grant_types_supported");
    if grants.is_some() && !lists("grant_types_supported", "refresh_token") {
        report.warn(SERVER, "`grant_types_supported` lacks refresh_token: people sign in again whenever a token ends");
    }
    machines(&strings(grants), known, report);
    report.prefer(
        SERVER,
        known.promises_iss(),
        "`iss` in its answers is advertised (RFC 9207)",
        "`iss` in its answers is not advertised: Gemini CLI refuses answers without it, and Codex uses another redirect path per server",
    );
    let documents =
        document.get("client_id_metadata_document_supported") == Some(&Value::Bool(true));
    match (documents, text("registration_endpoint").is_some()) {
        (true, true) => report.ok(SERVER, "clients may register by document or dynamically"),
        (true, false) => report.warn(SERVER, "no dynamic registration: clients without a metadata document need a client id from you"),
        (false, true) => report.ok(SERVER, "clients may register dynamically"),
        (false, false) => report.warn(SERVER, "no way to register: every client needs a client id from you (--client-id)"),
    }
    let methods = strings(document.get("token_endpoint_auth_methods_supported"));
    if !methods.is_empty() && !methods.iter().any(|each| each == "none") {
        report.warn(SERVER, format!("public clients are not offered (`none` is not among {methods:?}): most desktop clients are"));
    }
}

/// Ways in for callers that nobody signs in to.
fn machines(grants: &[String], known: &Known, report: &mut Report) {
    let has = |grant: &str| grants.iter().any(|one| one == grant);
    if has("client_credentials") {
        report.note(
            SERVER,
            "machines get tokens with credentials of their own (--machine tries that)",
        );
    }
    if has(super::machine::JWT_BEARER) {
        report.note(
            SERVER,
            "assertions of an identity provider are taken (--assertion-file tries that)",
        );
    }
    if known
        .server
        .contains_key("dpop_signing_alg_values_supported")
    {
        report.note(
            SERVER,
            "tokens can be bound to a key of the client (DPoP); this walk takes them unbound",
        );
    }
}

/// Whether a resource is the endpoint's own, or one above it at the same origin.
fn covers(resource: &str, named: &str) -> bool {
    match (parts(resource), parts(named)) {
        (Some((origin, above)), Some((same, path))) => {
            let rest = path.strip_prefix(&*above);
            origin == same && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        }
        _ => false,
    }
}

/// A list of texts.
pub(super) fn strings(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values
        .filter_map(|each| each.as_str().map(str::to_owned))
        .collect()
}

fn what(page: &Result<Page, String>) -> String {
    match page {
        Ok(page) if page.status == 200 => "200, but no JSON object".to_owned(),
        Ok(page) => page.status.to_string(),
        Err(why) => why.clone(),
    }
}
