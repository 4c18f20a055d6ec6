//! The first contact: what the endpoint says to who has no token (RFC 6750 §3,
//! RFC 9728 §5.1). Clients differ in how they ask, so each way is tried.

use serde_json::json;

use super::report::Report;
use super::web::{Page, Web};

const STEP: &str = "challenge";

/// What the challenge told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// `resource_metadata`.
    pub(super) metadata: Option<String>,
    /// `scope`.
    pub(super) scope: Option<String>,
}

/// Asks as clients do at first.
pub(super) async fn ask(web: &Web, url: &str, report: &mut Report) -> Option<Told> {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "toolgate-doctor", "version": env!("CARGO_PKG_VERSION")},
        },
    });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let page = match web.post(url, &headers, initialize.to_string()).await {
        Ok(page) => page,
        Err(why) => {
            report.fail(STEP, format!("the endpoint cannot be asked: {why}"));
            return None;
        }
    };
    let page = if page.status == 401 {
        page
    } else {
        later(web, url, page, report).await
    };
    let told = judge(&page, report)?;
    others(web, url, report).await;
    Some(told)
}

/// Some servers ask for a token only when tools are wanted, and some speak the newer
/// revision alone: the challenge may be there.
async fn later(web: &Web, url: &str, first: Page, report: &mut Report) -> Page {
    let listed = modern(web, url, "tools/list").await;
    let Some(page) = listed.ok().filter(|page| page.status == 401) else {
        return first;
    };
    report.warn(
        STEP,
        format!(
            "`initialize` of 2025-11-25 is answered with {} and not with 401; only `tools/list` of 2026-07-28 asks for a token: clients may show no sign-in when they connect",
            first.status
        ),
    );
    page
}

/// A request of revision 2026-07-28.
async fn modern(web: &Web, url: &str, method: &str) -> Result<Page, String> {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": method,
        "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }},
    });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    web.post(url, &headers, body.to_string()).await
}

#[expect(clippy::too_many_lines, reason = "one remark after another")]
fn judge(page: &Page, report: &mut Report) -> Option<Told> {
    match page.status {
        401 => {}
        200..=299 => {
            report.note(
                STEP,
                "the endpoint answers without a token: whoever reaches it may call its tools, and no client will sign in",
            );
            return None;
        }
        301..=308 => {
            let place = page.header("location").unwrap_or("elsewhere");
            report.fail(
                STEP,
                format!("the endpoint redirects to {place}: clients do not follow with a POST; give people that URL"),
            );
            return None;
        }
        404 | 405 => {
            report.fail(
                STEP,
                format!("{}: there is no MCP endpoint at this path", page.status),
            );
            return None;
        }
        status => {
            report.fail(
                STEP,
                format!("{status} in the place of 401: clients start to sign in at a 401 only"),
            );
            return None;
        }
    }
    let mut bearers = page.challenges.iter().filter(|each| each.is("Bearer"));
    if page.challenges.iter().any(|each| each.is("DPoP")) {
        report.warn(
            STEP,
            "a DPoP challenge: tokens are bound to a key of the client (RFC 9449), which most MCP clients, and this walk, do not do",
        );
    }
    let Some(bearer) = bearers.next() else {
        report.warn(
            STEP,
            "401 without a `WWW-Authenticate: Bearer`: clients have to guess where the metadata is (RFC 9728 §5.1)",
        );
        return Some(Told::default());
    };
    if bearers.next().is_some() {
        report.warn(STEP, "two Bearer challenges: clients take the first");
    }
    let told = Told {
        metadata: bearer.get("resource_metadata").map(str::to_owned),
        scope: bearer.get("scope").map(str::to_owned),
    };
    report.prefer(
        STEP,
        told.metadata.is_some(),
        "401 with a Bearer challenge that names the metadata",
        "the challenge has no `resource_metadata`: clients that do not look at well-known places fail (RFC 9728 §5.1)",
    );
    if bearer.get("error").is_some() {
        report.warn(
            STEP,
            "the challenge has an `error` though no token was sent (RFC 6750 §3.1): some clients throw their tokens away",
        );
    }
    if told.scope.is_none() {
        report.note(
            STEP,
            "the challenge names no scope: clients ask for those of the metadata",
        );
    }
    Some(told)
}

/// Codex asks by GET, Gemini by HEAD, Claude Code as 2026-07-28.
async fn others(web: &Web, url: &str, report: &mut Report) {
    let get = web.get(
        url,
        &[("accept", "*/*"), ("mcp-protocol-version", "2024-11-05")],
    );
    match get.await {
        Ok(page) if page.status == 401 => report.ok(STEP, "the same for GET, as Codex asks"),
        Ok(page) => report.warn(
            STEP,
            format!(
                "GET is answered with {}: Codex looks for its challenge there",
                page.status
            ),
        ),
        Err(why) => report.warn(STEP, format!("GET is not answered: {why}")),
    }
    match modern(web, url, "server/discover").await {
        Ok(page) if page.status == 401 => report.ok(STEP, "the same for revision 2026-07-28"),
        Ok(page) => report.warn(
            STEP,
            format!(
                "revision 2026-07-28 is answered with {} before 401",
                page.status
            ),
        ),
        Err(why) => report.warn(STEP, format!("revision 2026-07-28 is not answered: {why}")),
    }
}

/// A token that is none has to be told from no token.
pub(super) async fn bad_token(web: &Web, url: &str, report: &mut Report) {
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", "Bearer not-a-token"),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let Ok(page) = web.post(url, &headers, body).await else {
        return;
    };
    let error = page.challenges.iter().find_map(|each| each.get("error"));
    report.prefer(
        STEP,
        page.status == 401 && error == Some("invalid_token"),
        "a bad token is 401 `invalid_token`: clients refresh",
        "a bad token is not answered with 401 and error=\"invalid_token\": clients keep a dead token in use (RFC 6750 §3.1)",
    );
}
