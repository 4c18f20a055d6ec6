//! Requests of the modern era: stateless, self-describing, headers that mirror
//! the body (MCP 2026-07-28 transports, Server Validation).

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::catalog::Family;
use crate::limits::Cost;
use crate::pipeline::{Asking, Attempt, Refusal};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{
    ClientCapabilities, Era, Json, Method, Request, RequestMeta, Version, codes, meta,
};

use super::answers::{self, Manner, Reply};
use super::call::{self, Caller};
use super::{Answer, Inbound, McpHeaders, SERVER_NAME, Server, capabilities, era, listen, lists};

/// Answers one modern request.
pub(super) async fn request(
    server: &Arc<Server>,
    inbound: Inbound,
    request: Request,
    meta: RequestMeta,
    bytes: usize,
) -> Answer {
    let version = Version::MODERN;
    let attempt = attempt(&inbound, &meta, bytes);
    if let Err(fault) = agreed(&inbound.headers, &request, &meta) {
        return refused(server, &inbound, &request, fault, &attempt).await;
    }
    let offered = |method: &Method| {
        !method.is_of_tasks() || capabilities::offered(server, &inbound.context).tasks
    };
    if let Some(method) = Method::parse(&request.method).filter(offered) {
        let caller = caller(attempt, &meta);
        let manner = manner(method);
        return call::post(server, inbound, request, meta, caller, manner).await;
    }
    match request.method.as_str() {
        "server/discover" => {
            let answer = |server: &Server| Ok(discover(server, &inbound));
            browse(server, &inbound, &request, answer).await
        }
        "tools/list" => {
            let answer =
                |server: &Server| lists::tools(server, &inbound.context, &request, version);
            browse(server, &inbound, &request, answer).await
        }
        method if lists::family(method).is_some() => {
            let family = lists::family(&request.method).unwrap_or(Family::Resources);
            let answer =
                |server: &Server| lists::items(server, &inbound.context, &request, version, family);
            browse(server, &inbound, &request, answer).await
        }
        "subscriptions/listen" => listen::subscribe(server, inbound, &request, &meta),
        method => answers::unknown_method(&request.id, method, true).into(),
    }
}

/// What the record and the upstream are told of a request.
pub(super) fn caller(attempt: Attempt, meta: &RequestMeta) -> Caller {
    let capabilities = meta.client_capabilities.clone();
    Caller {
        attempt,
        within: None,
        log_level: meta.log_level,
        capabilities: capabilities.map_or_else(ClientCapabilities::none, ClientCapabilities::new),
        asking: Asking::Rounds,
    }
}

/// A request that has the generous budget of its own.
async fn browse(
    server: &Server,
    inbound: &Inbound,
    request: &Request,
    answer: impl FnOnce(&Server) -> Result<Json, Refusal>,
) -> Answer {
    let admitted = server.pipeline.limits.admit(&inbound.context, Cost::Browse);
    if let Err(fault) = admitted.await {
        return answers::not_admitted(Some(&request.id), fault).into();
    }
    match answer(server) {
        Ok(result) => Reply::result(&request.id, &result).into(),
        Err(refusal) => {
            answers::of_refusal(Some(&request.id), refusal, Manner::plain(Era::Modern)).into()
        }
    }
}

/// Why a request is not of the form that the modern era demands.
enum Fault {
    Mismatch(String),
    Unsupported(String),
    MissingMeta(String),
}

/// What the record says of a modern request.
pub(super) fn attempt(inbound: &Inbound, meta: &RequestMeta, bytes: usize) -> Attempt {
    let mut attempt = era::attempt(inbound, Era::Modern, Version::MODERN, bytes);
    attempt.client_info = meta.client_info.as_ref().map(client_name);
    if let Some(trace) = meta.traceparent.as_deref().and_then(era::trace_id) {
        attempt.trace_id = Some(trace);
    }
    attempt
}

async fn refused(
    server: &Arc<Server>,
    inbound: &Inbound,
    request: &Request,
    fault: Fault,
    attempt: &Attempt,
) -> Answer {
    let id = Some(&request.id);
    if request.method == "tools/call" {
        // A call that is refused for its form is on record like any other refusal.
        let words = match &fault {
            Fault::Mismatch(words) | Fault::MissingMeta(words) => words.clone(),
            Fault::Unsupported(_) => "unsupported protocol version".to_owned(),
        };
        let told = server
            .pipeline
            .refuse_unread(
                attempt,
                &inbound.context,
                era::called_name(request).as_deref(),
                Refusal::StandardHeaderMismatch(words),
            )
            .await;
        if matches!(told, Refusal::AuditUnavailable(_)) {
            return answers::of_refusal(id, told, Manner::plain(Era::Modern)).into();
        }
    }
    match fault {
        Fault::Mismatch(words) => Reply::error(
            400,
            id,
            codes::HEADER_MISMATCH,
            &format!("Header mismatch: {words}"),
            None,
        ),
        Fault::Unsupported(requested) => answers::unsupported_version(id, &requested),
        Fault::MissingMeta(words) => Reply::error(400, id, codes::INVALID_PARAMS, &words, None),
    }
    .into()
}

/// Holds the headers against the body, the version against ours, `_meta` against its required members.
fn agreed(headers: &McpHeaders, request: &Request, meta: &RequestMeta) -> Result<(), Fault> {
    let Some(version) = meta.protocol_version.as_deref() else {
        return Err(Fault::MissingMeta(format!(
            "`params._meta` must have \"{}\"",
            meta::PROTOCOL_VERSION
        )));
    };
    same(
        "MCP-Protocol-Version",
        headers.protocol_version.as_deref(),
        version,
    )?;
    if version != Version::MODERN.as_str() {
        return Err(Fault::Unsupported(version.to_owned()));
    }
    same("Mcp-Method", headers.method.as_deref(), &request.method)?;
    if let Some(name) = mirrored_name(request) {
        let given = headers.name.as_deref().map(decoded).transpose()?;
        same("Mcp-Name", given.as_deref(), &name)?;
    }
    if !meta
        .client_capabilities
        .as_ref()
        .is_some_and(Json::is_object)
    {
        return Err(Fault::MissingMeta(format!(
            "`params._meta` must have an object \"{}\"",
            meta::CLIENT_CAPABILITIES
        )));
    }
    if meta.bad_log_level {
        return Err(Fault::MissingMeta(format!(
            "`params._meta` \"{}\" is no log level: send one of debug, info, notice, warning, error, critical, alert, emergency",
            meta::LOG_LEVEL
        )));
    }
    Ok(())
}

fn same(header: &str, given: Option<&str>, body: &str) -> Result<(), Fault> {
    let shown = |text: &str| text.chars().take(80).collect::<String>();
    match given {
        Some(given) if given == body => Ok(()),
        Some(given) => Err(Fault::Mismatch(format!(
            "{header} header value '{}' does not match body value '{}'",
            shown(given),
            shown(body)
        ))),
        None => Err(Fault::Mismatch(format!(
            "{header} header is missing; the body says '{}'",
            shown(body)
        ))),
    }
}

/// The body value that `Mcp-Name` mirrors. One of a wrong type is left to the method to refuse.
fn mirrored_name(request: &Request) -> Option<String> {
    let field = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    request
        .params
        .as_ref()?
        .get(field)?
        .string()
        .map(Into::into)
}

/// A header value, decoded where it has the Base64 sentinel form.
fn decoded(value: &str) -> Result<String, Fault> {
    let Some(inner) = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(value.to_owned());
    };
    let text = STANDARD
        .decode(inner)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    text.ok_or_else(|| Fault::Mismatch("Mcp-Name is not valid Base64 of UTF-8 text".to_owned()))
}

/// The client's own word for itself, for the record.
pub(super) fn client_name(info: &Json) -> String {
    let part = |key: &str| {
        info.get(key).and_then(|value| {
            value
                .string()
                .map(|text| text.chars().take(64).collect::<String>())
        })
    };
    let name = part("name").unwrap_or_default();
    part("version").map_or_else(|| name.clone(), |version| format!("{name}/{version}"))
}

/// Every modern result says that it is complete, and who answers.
#[expect(
    clippy::needless_pass_by_value,
    reason = "all ways to lower a result have one form"
)]
pub(super) fn complete(result: Json) -> Json {
    let (mut has_type, mut given_meta) = (false, None);
    for (key, value) in result.members() {
        match &*key {
            "resultType" => has_type = true,
            "_meta" => given_meta = Some(value),
            _ => {}
        }
    }
    let meta = given_meta.filter(Json::is_object);
    let meta = meta.unwrap_or_else(Json::empty_object);
    let meta = meta.with_member(meta::SERVER_INFO, &server_info());
    let mut head = ObjectBuilder::with_capacity(result.as_str().len() + 160);
    if !has_type {
        head = head.text("resultType", "complete");
    }
    // A large result is copied once, as it stands.
    head.json("_meta", &meta).and_members_of(&result, "_meta")
}

/// A result that says how long it may be kept: by nobody but its caller, whatever
/// the upstream thinks (MCP 2026-07-28 caching).
fn complete_cached(result: Json) -> Json {
    let asks = result
        .get("resultType")
        .as_ref()
        .and_then(Json::string)
        .as_deref()
        == Some("input_required");
    if asks {
        return complete(result);
    }
    let result = result.with_member("cacheScope", &Json::from_text("private"));
    let known = result.get("ttlMs").and_then(|ttl| ttl.integer());
    let result = match known {
        Some(0..) => result,
        _ => result.with_member("ttlMs", &Json::from_integer(0)),
    };
    complete(result)
}

/// How answers to a method are written.
pub(super) fn manner(method: Method) -> Manner {
    Manner {
        era: Era::Modern,
        lower: match method {
            Method::ReadResource => complete_cached,
            _ => complete,
        },
    }
}

/// Name and version of this software.
pub(super) fn server_info() -> Json {
    ObjectBuilder::new()
        .text("name", SERVER_NAME)
        .text("version", env!("CARGO_PKG_VERSION"))
        .build()
}

fn discover(server: &Server, inbound: &Inbound) -> Json {
    let versions: Vec<Json> = Version::ALL
        .iter()
        .map(|version| Json::from_text(version.as_str()))
        .collect();
    let capabilities = capabilities::of(server, &inbound.context, Era::Modern, inbound.extensions);
    let view = server.pipeline.catalog.view(inbound.context.tenant_id());
    let ttl = i64::try_from(view.ttl().as_millis()).unwrap_or(0);
    complete(
        ObjectBuilder::new()
            .json(
                "supportedVersions",
                &ArrayBuilder::from_iter(&versions).build(),
            )
            .json("capabilities", &capabilities)
            .integer("ttlMs", ttl)
            .text("cacheScope", "private")
            .build(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_completed_once_and_keeps_what_it_has() {
        let json = Json::from_value(
            &serde_json::json!({"resultType": "complete", "content": [], "_meta": {"x": 1}}),
        );
        let done = complete(json);
        assert_eq!(done.get("resultType").unwrap().as_str(), "\"complete\"");
        assert_eq!(done.get("_meta").unwrap().get("x").unwrap().as_str(), "1");
        assert_eq!(complete(done.clone()).as_str(), done.as_str());
    }

    #[test]
    fn the_sentinel_form_is_decoded() {
        assert_eq!(
            decoded("=?base64?SGVsbG8sIOS4lueVjA==?=").ok().unwrap(),
            "Hello, 世界"
        );
        assert_eq!(decoded("plain").ok().unwrap(), "plain");
        assert!(decoded("=?base64?***?=").is_err());
    }
}
