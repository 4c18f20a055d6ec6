//! Which era a POST is of, and where it goes from there (`rules.md` §1.1, §1.2).

use std::sync::Arc;

use bytes::Bytes;

use crate::pipeline::{Ask, Attempt, Refusal};
use crate::protocol::{
    Era, Json, JsonLimits, Message, Method, Notification, Request, RequestId, RequestMeta,
    Response, Version,
};
use crate::telemetry::TraceContext;
use crate::upstream::CallerKey;

use super::answers::{self, Manner, Reply};
use super::handling::{self, Handling};
use super::{Answer, Inbound, Server, batch, legacy, modern};

/// Where a request belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `_meta` says which modern version, or a header alone does.
    Modern,
    /// Opens a session.
    Initialize,
    /// Inside a session, or lost without one.
    Legacy,
}

/// Decides by `_meta`, method and header, in this order.
pub(super) fn route(meta: &RequestMeta, method: &str, header: Option<&str>) -> Route {
    if meta.protocol_version.is_some() {
        Route::Modern
    } else if method == "initialize" {
        Route::Initialize
    } else if header.is_some_and(Version::is_modern_date) {
        Route::Modern
    } else {
        Route::Legacy
    }
}

/// Reads a body and hands the message on.
pub(super) async fn post(server: &Arc<Server>, inbound: Inbound, body: Bytes) -> Answer {
    let json = match Json::parse(body.clone(), &JsonLimits::CALLER) {
        Ok(json) => json,
        Err(fault) => {
            return refuse(server, &inbound, &body, None, Refusal::NotJson(fault))
                .await
                .into();
        }
    };
    match Message::read(&json) {
        Err(fault) => refuse(
            server,
            &inbound,
            &body,
            fault.id.as_ref(),
            Refusal::InvalidRequest(fault.reason.to_owned()),
        )
        .await
        .into(),
        Ok(Message::Batch(members)) => batch::post(server, inbound, members, &body).await,
        Ok(Message::Request(request)) => self::request(server, inbound, request, body.len()).await,
        Ok(Message::Notification(given)) => notification(server, inbound, &given).await,
        Ok(Message::Response(given)) => response(server, inbound, &body, given).await,
    }
}

async fn request(
    server: &Arc<Server>,
    mut inbound: Inbound,
    request: Request,
    bytes: usize,
) -> Answer {
    let meta = RequestMeta::of(request.params.as_ref());
    let handling = Handling::begin(&mut inbound, &request.method, Some(&request.id), &meta);
    let header = inbound.headers.protocol_version.as_deref();
    server.pipeline.catalog.started().await;
    let route = route(&meta, &request.method, header);
    let open = Arc::clone(&handling);
    let answer = handling.around(async move {
        match route {
            Route::Modern => modern::request(server, inbound, request, meta, bytes, &open).await,
            Route::Initialize => legacy::initialize(server, &inbound, &request, &open).await,
            Route::Legacy => legacy::request(server, inbound, request, meta, bytes, &open).await,
        }
    });
    let answer = answer.await;
    handling.answered(&answer, &server.pipeline.metrics);
    handling::kept_open(handling, answer)
}

async fn notification(server: &Arc<Server>, mut inbound: Inbound, given: &Notification) -> Answer {
    let meta = RequestMeta::of(given.params.as_ref());
    let handling = Handling::begin(&mut inbound, &given.method, None, &meta);
    let header = inbound.headers.protocol_version.as_deref();
    let answer = match route(&meta, &given.method, header) {
        Route::Modern => Reply::empty(202).into(),
        Route::Initialize | Route::Legacy => {
            let taken = legacy::notification(server, &inbound, given, &handling);
            handling.around(taken).await
        }
    };
    handling.answered(&answer, &server.pipeline.metrics);
    answer
}

/// Takes a response: in a session alone may one come.
async fn response(server: &Arc<Server>, inbound: Inbound, body: &Bytes, given: Response) -> Answer {
    let header = inbound.headers.protocol_version.as_deref();
    if header.is_some_and(Version::is_modern_date) || inbound.headers.session.is_none() {
        let words = "a JSON-RPC response has no place here: send requests and notifications";
        let refusal = Refusal::InvalidRequest(words.to_owned());
        return refuse(server, &inbound, body, given.id.as_ref(), refusal)
            .await
            .into();
    }
    legacy::response(server, &inbound, &given).await
}

/// Records a body that never became a request, by its digest alone, and answers it.
pub(super) async fn refuse(
    server: &Arc<Server>,
    inbound: &Inbound,
    body: &Bytes,
    id: Option<&RequestId>,
    refusal: Refusal,
) -> Reply {
    let mut attempt = attempt(inbound, Era::Legacy, Version::NEWEST_LEGACY, body.len());
    if let Some(modern) = inbound
        .headers
        .protocol_version
        .as_deref()
        .filter(|header| Version::is_modern_date(header))
    {
        attempt.era = Era::Modern;
        attempt.version = Version::parse(modern).unwrap_or(Version::MODERN);
    }
    let era = attempt.era;
    attempt.unread = Some(body.clone());
    let refusal = server
        .pipeline
        .refuse_unread(&attempt, &inbound.context, None, refusal)
        .await;
    answers::of_refusal(id, refusal, Manner::plain(era))
}

/// What the record says of a request.
pub(super) fn attempt(
    inbound: &Inbound,
    era: Era,
    version: Version,
    request_bytes: usize,
) -> Attempt {
    let principal = inbound.context.principal().key();
    Attempt {
        address: inbound.address,
        era,
        version,
        client_info: None,
        config_digest: inbound.config_digest,
        caller: CallerKey(*principal.as_bytes()),
        request_bytes,
        unread: None,
        trace_id: inbound.trace.as_ref().map(TraceContext::trace_id),
    }
}

/// The tool that a request asks for, where that much can be read.
pub(super) fn called_name(request: &Request) -> Option<String> {
    let name = request.params.as_ref()?.get("name")?;
    name.string().map(Into::into)
}

/// What a request asks for, or why it cannot be read (`rules.md` §2.2).
pub(super) fn ask(request: &Request) -> Result<Ask, Refusal> {
    let malformed = |words: String| Refusal::MalformedParams(words);
    let method = Method::parse(&request.method)
        .ok_or_else(|| malformed(format!("`{}` is not run", request.method)))?;
    let (key, example) = match method {
        Method::CallTool => ("name", "{\"name\": \"<tool>\", \"arguments\": {…}}"),
        Method::GetPrompt => ("name", "{\"name\": \"<prompt>\", \"arguments\": {…}}"),
        Method::ReadResource => ("uri", "{\"uri\": \"<resource>\"}"),
        Method::Complete => (
            "ref",
            "{\"ref\": {…}, \"argument\": {\"name\": …, \"value\": …}}",
        ),
        Method::GetTask | Method::UpdateTask | Method::CancelTask => {
            ("taskId", "{\"taskId\": \"<task>\"}")
        }
    };
    let params = request.params.as_ref().filter(|params| params.is_object());
    let params = params.ok_or_else(|| malformed(format!("`params` is missing: send {example}")))?;
    let value = params.get(key);
    if method == Method::Complete {
        let argument = params.get("argument").filter(Json::is_object);
        let text = |key: &str| argument.as_ref()?.get(key)?.string().map(drop);
        if text("name").and(text("value")).is_none() {
            return Err(malformed(format!(
                "`params.argument` needs a name and a value: send {example}"
            )));
        }
        return Ok(Ask {
            method,
            name: completed(value.as_ref()),
            params: params.clone(),
        });
    }
    let value =
        value.ok_or_else(|| malformed(format!("`params.{key}` is missing: send {example}")))?;
    let kind = value.kind().name();
    let name = value
        .string()
        .ok_or_else(|| malformed(format!("`params.{key}` must be a string, got {kind}")))?
        .into_owned();
    Ok(Ask {
        method,
        name,
        params: params.clone(),
    })
}

/// What a completion is about, for the record.
fn completed(reference: Option<&Json>) -> String {
    let text = |key: &str| Some(reference?.get(key)?.string()?.into_owned());
    text("name").or_else(|| text("uri")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_era_is_told_by_meta_then_method_then_header() {
        let none = RequestMeta::default();
        let modern = RequestMeta {
            protocol_version: Some("2026-07-28".into()),
            ..RequestMeta::default()
        };
        for (meta, method, header, want) in [
            (&modern, "tools/list", None, Route::Modern),
            (&modern, "initialize", Some("2025-11-25"), Route::Modern),
            (&none, "initialize", Some("2030-01-01"), Route::Initialize),
            (&none, "tools/list", Some("2026-07-28"), Route::Modern),
            (&none, "tools/list", Some("2030-01-01"), Route::Modern),
            (&none, "tools/list", Some("1999-01-01"), Route::Legacy),
            (&none, "tools/list", Some("latest"), Route::Legacy),
            (&none, "tools/list", None, Route::Legacy),
        ] {
            assert_eq!(route(meta, method, header), want, "{method} {header:?}");
        }
    }
}
