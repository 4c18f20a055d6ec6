//! What is not a tool's: resources, prompts and completion. The same decision, the
//! same budget, the same cleaning; a record where the operator wants one; a failure
//! is a JSON-RPC error, since there is no result that could say it.

use crate::catalog::Uris;
use crate::dispatch::{DispatchFault, Errand};
use crate::ids::UpstreamId;
use crate::limits::Admission;
use crate::protocol::{Json, Method, codes};
use crate::sanitize::CleanResult;
use crate::telemetry::names::{field, span};
use crate::telemetry::trace;
use crate::upstream::UpstreamError;
use crate::visibility;

use super::converse::Talk;
use super::record::{Record, shortened};
use super::{Call, Pipeline, Ready, Refusal, result};

/// Longest excerpt of an upstream's words in an error.
const EXCERPT: usize = 300;

impl Pipeline {
    /// What can refuse a resource, a prompt or a completion before it is dispatched.
    pub(super) fn admitted_reading(
        &self,
        call: &Call,
        admission: Admission,
        record: &mut Record,
    ) -> Result<Ready, Refusal> {
        let context = &call.context;
        let ask = &call.ask;
        let view = self.catalog.view(context.tenant_id());
        // Input and state are the rounds' to put in.
        let ours = |name: &str| matches!(name, "_meta" | "inputResponses" | "requestState");
        let params = ask.params.without_members(ours);
        let errand = trace::step(span::VISIBILITY, || {
            match ask.method {
                Method::ReadResource => {
                    visibility::see_resource(context, &self.catalog, &view, &ask.name)
                        .map(|place| Errand::of_resource(&place, &params))
                }
                Method::GetPrompt => visibility::see_prompt(context, &view, &ask.name)
                    .map(|prompt| Errand::of_prompt(&prompt, &params)),
                _ => match Reference::of(&ask.params)? {
                    Reference::Prompt(name) => visibility::see_prompt(context, &view, &name)
                        .map(|prompt| Errand::of_completion(&prompt, "name", &params)),
                    Reference::Resource(uri) => visibility::see_template(context, &view, &uri)
                        .map(|template| Errand::of_completion(&template, "uri", &params)),
                },
            }
            .map_err(|_| unknown(call))
        })?;
        record.name_upstream(errand.upstream());
        name_in_trace(&errand);
        record.keep_arguments(&params, &self.sanitizer, context.rules(), &self.auditor);
        Ok(Ready {
            errand,
            tool: None,
            _admission: admission,
        })
    }

    /// The result with the URIs that callers use, whose owner is remembered.
    pub(super) fn with_our_uris(
        &self,
        call: &Call,
        upstream: &UpstreamId,
        clean: CleanResult,
    ) -> CleanResult {
        let context = &call.context;
        let view = self.catalog.view(context.tenant_id());
        let caller = context.principal().key();
        let mut remember = |uri: &str| {
            self.catalog
                .remember(context.tenant_id(), caller.as_bytes(), uri, upstream);
        };
        let json = Uris::new(view.uris(), upstream).result(clean.json(), &mut remember);
        clean.with_json(json)
    }
}

/// What a completion is about.
enum Reference {
    Prompt(String),
    Resource(String),
}

impl Reference {
    /// Reads `ref` (MCP 2026-07-28 completion, Reference Types).
    fn of(params: &Json) -> Result<Self, Refusal> {
        let malformed = || {
            Refusal::MalformedParams(
                "`params.ref` must be {\"type\": \"ref/prompt\", \"name\": …} or {\"type\": \"ref/resource\", \"uri\": …}".to_owned(),
            )
        };
        let reference = params.get("ref").ok_or_else(malformed)?;
        let text = |key: &str| Some(reference.get(key)?.string()?.into_owned());
        match text("type").as_deref() {
            Some("ref/prompt") => text("name").map(Self::Prompt).ok_or_else(malformed),
            Some("ref/resource") => text("uri").map(Self::Resource).ok_or_else(malformed),
            _ => Err(malformed()),
        }
    }
}

/// Says in the trace what it is about. What stands behind a URI's `?` is left out.
fn name_in_trace(errand: &Errand) {
    trace::note(field::UPSTREAM, || errand.upstream().to_string());
    match errand.method() {
        Method::ReadResource => trace::note(field::RESOURCE, || {
            let uri = errand.shown().split(['?', '#']).next().unwrap_or_default();
            shortened(uri)
        }),
        Method::GetPrompt => {
            trace::note(field::PROMPT, || errand.shown().to_owned());
            trace::rename(|| format!("{} {}", errand.method().as_str(), errand.shown()));
        }
        _ => {}
    }
}

/// Hidden or missing: one answer for both.
fn unknown(call: &Call) -> Refusal {
    let name = shortened(&call.ask.name);
    match call.ask.method {
        Method::ReadResource => Refusal::UnknownResource {
            uri: call.ask.name.clone(),
        },
        Method::GetPrompt => Refusal::UnknownPrompt { name },
        _ => Refusal::UnknownReference,
    }
}

/// Why a request that is not a tool's has no result.
pub(super) fn failed(talk: &mut Talk<'_>, fault: DispatchFault) -> Result<CleanResult, Refusal> {
    let call = talk.call;
    let (code, message, data) = match fault {
        DispatchFault::Upstream(UpstreamError::Rpc {
            code,
            message,
            data,
        }) => (code, message, data),
        fault => return result::failed(talk, fault),
    };
    talk.record.upstream_failed("JSON-RPC error");
    let cleaned = talk
        .pipeline
        .sanitizer
        .error(message, data, talk.rules(), EXCERPT);
    let error = match cleaned {
        Ok(error) => error,
        Err(unclean) => return result::kept_back(talk, unclean),
    };
    talk.record.found(error.findings.clone());
    Err(match code {
        // The upstream knows the method and not the thing.
        codes::LEGACY_RESOURCE_NOT_FOUND => unknown(call),
        codes::INVALID_PARAMS if is_missing(call, error.data.as_ref()) => unknown(call),
        code => Refusal::Upstream {
            code: result::told(code),
            message: error.message,
            data: error.data,
        },
    })
}

/// Whether an upstream's error says that there is no such resource: it names one
/// (MCP 2026-07-28 resources, Error Handling).
fn is_missing(call: &Call, data: Option<&Json>) -> bool {
    call.ask.method == Method::ReadResource && data.is_some_and(|data| data.get("uri").is_some())
}
