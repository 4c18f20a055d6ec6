//! The MCP endpoint: from a request to what `mcp` is asked, and from its answer
//! to a response. The order of checks is `rules.md` §1.2.

mod caller;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use axum::Extension;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::identity::{OWN_PROVIDER, OwnIssuer, Principal};
use crate::ids::TenantId;
use crate::mcp::{self, Accept, Answer, Inbound, McpHeaders, Reply};
use crate::oauth::continuations::Visitor;
use crate::oauth::own_subject;
use crate::tenancy::{self, TenantContext};

use super::base::metadata_url;
use super::bearer::{self, Challenge};
use super::edge::CallerAddress;
use super::media::{accept, is_json};
use super::{Edge, Snapshot, revoked, sse};

/// The methods of the endpoint.
const ALLOW: &str = "POST, GET, DELETE";
/// Bytes of a refused body that are read and dropped.
const DRAINED: usize = 16 << 20;
/// How long a body may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// `/mcp`
pub(super) async fn root(
    State(edge): State<Edge>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(address): Extension<CallerAddress>,
    request: Request,
) -> Response {
    handle(edge, peer, address, None, request).await
}

/// `/t/{tenant}/mcp`
pub(super) async fn tenant(
    State(edge): State<Edge>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Extension(address): Extension<CallerAddress>,
    Path(tenant): Path<String>,
    request: Request,
) -> Response {
    handle(edge, peer, address, Some(TenantId::new(tenant)), request).await
}

async fn handle(
    edge: Edge,
    peer: SocketAddr,
    CallerAddress(address): CallerAddress,
    tenant: Option<TenantId>,
    request: Request,
) -> Response {
    if !matches!(
        *request.method(),
        Method::POST | Method::GET | Method::HEAD | Method::DELETE
    ) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, ALLOW)]).into_response();
    }
    let snapshot = edge.current.load_full();
    let base = snapshot.base.of(request.headers(), peer.ip());
    let site = Site {
        edge,
        snapshot,
        base,
        tenant,
        address,
    };
    let context = match site.authenticated(request.headers()).await {
        Ok(context) => context,
        Err(response) => return response,
    };
    let accept = accept(request.headers());
    let principal = Arc::clone(context.principal());
    let inbound = site.inbound(context, request.headers(), accept);
    let answer = match *request.method() {
        Method::POST => match site.body(request).await {
            Ok(body) => site.edge.server.post(inbound, body).await,
            Err(response) => return response,
        },
        Method::DELETE => site.ended(inbound).await,
        Method::GET => site.edge.server.get(inbound).await,
        _ => Reply {
            allow: Some(ALLOW),
            ..Reply::empty(405)
        }
        .into(),
    };
    site.respond(answer, accept, &principal)
}

/// One request's place: which endpoint, under which configuration, from where.
struct Site {
    edge: Edge,
    snapshot: Arc<Snapshot>,
    base: String,
    tenant: Option<TenantId>,
    address: std::net::IpAddr,
}

impl Site {
    /// The built-in authorization server, where there is one.
    fn own_issuer(&self) -> Option<OwnIssuer<'_>> {
        let enabled = self.snapshot.config.authorization_server.enabled;
        enabled.then(|| OwnIssuer {
            tokens: &self.edge.own_tokens,
            issuer: &self.base,
        })
    }

    /// Whom a link of ours is for: a person who can sign in to our pages. A machine is
    /// nobody's, and its subject is its own name.
    fn visitor(&self, context: &TenantContext) -> Option<Visitor> {
        let (principal, settings) = (context.principal(), &self.snapshot.oauth);
        if !settings.server.enabled {
            return None;
        }
        let subject = if principal.provider().as_str() == OWN_PROVIDER {
            let own = principal.subject();
            (own.as_str() != principal.client().as_str()).then(|| own.clone())?
        } else {
            settings
                .providers
                .get(principal.provider())?
                .login
                .as_ref()?;
            own_subject(principal.issuer(), principal.subject())
        };
        Some(Visitor {
            tenant: context.tenant_id().clone(),
            subject,
            account: format!("{}/account", self.base.trim_end_matches('/')),
        })
    }

    fn inbound(&self, context: TenantContext, headers: &HeaderMap, accept: Accept) -> Inbound {
        let current = Arc::clone(&self.edge.current);
        let tenant = self.tenant.clone();
        let own = Arc::clone(&self.edge.own_tokens);
        let resolver: mcp::Resolver = Arc::new(move |principal| {
            if own.is_revoked(principal) {
                return None;
            }
            let snapshot: Guard<Arc<Snapshot>> = current.load();
            tenancy::resolve(Arc::clone(principal), tenant.as_ref(), &snapshot.tenants).ok()
        });
        Inbound {
            visitor: self.visitor(&context),
            context,
            resolver,
            credentials: Arc::clone(&self.snapshot.credentials),
            config_digest: self.snapshot.digest,
            address: Some(self.address),
            headers: mcp_headers(headers),
            accept,
            epoch: self.edge.epoch.clone(),
            extensions: self.snapshot.oauth.extensions(),
        }
    }

    /// The body of a POST, once its size, type and the wanted media types are in order.
    async fn body(&self, request: Request) -> Result<Bytes, Response> {
        let limit = self.snapshot.config.server.body_limit.0;
        let headers = request.headers();
        let declared = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|length| length > limit as u64) {
            drained(request.into_body()).await;
            return Err(too_large(limit));
        }
        if !is_json(headers) {
            return Err((
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Send Content-Type: application/json.\n",
            )
                .into_response());
        }
        let accept = accept(headers);
        if !accept.json && !accept.stream {
            return Err((
                StatusCode::NOT_ACCEPTABLE,
                "Accept must hold application/json, text/event-stream, or both.\n",
            )
                .into_response());
        }
        let reading = Limited::new(request.into_body(), limit).collect();
        match tokio::time::timeout(BODY_PATIENCE, reading).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
                Err(too_large(limit))
            }
            Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "The body broke off.\n").into_response()),
            Err(_) => Err((
                StatusCode::REQUEST_TIMEOUT,
                "The body did not arrive in time.\n",
            )
                .into_response()),
        }
    }

    fn revoked(&self, principal: &Arc<Principal>) -> impl Future<Output = ()> + use<> {
        let (own, epoch) = (&self.edge.own_tokens, &self.edge.epoch);
        revoked::ending(own, epoch, Arc::clone(principal))
    }

    fn respond(&self, answer: Answer, accept: Accept, principal: &Arc<Principal>) -> Response {
        let keep_alive = self.snapshot.config.server.keep_alive.0;
        match answer {
            Answer::Stream(messages) => {
                let ended = messages.take_until(self.revoked(principal));
                sse::response(Box::pin(ended), keep_alive)
            }
            Answer::Events(events) => {
                let ended = events.take_until(self.revoked(principal));
                sse::of_events(Box::pin(ended), keep_alive)
            }
            Answer::Reply(reply) => self.reply(reply, accept),
        }
    }

    fn reply(&self, reply: Reply, accept: Accept) -> Response {
        let status =
            StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = match reply.body {
            None => status.into_response(),
            // A caller that takes only streams gets its one message as a stream.
            Some(body) if !accept.json && status == StatusCode::OK => {
                let one: mcp::Messages = Box::pin(futures_util::stream::once(async { body }));
                sse::response(one, self.snapshot.config.server.keep_alive.0)
            }
            Some(body) => {
                let kind = [(
                    header::CONTENT_TYPE,
                    HeaderValue::from_static("application/json"),
                )];
                (status, kind, Body::from(body.into_bytes())).into_response()
            }
        };
        let headers = response.headers_mut();
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        let mut put = |name: HeaderName, text: &str| {
            if let Ok(value) = HeaderValue::from_str(text) {
                headers.insert(name, value);
            }
        };
        if let Some(session) = &reply.session {
            put(HeaderName::from_static("mcp-session-id"), session);
        }
        if let Some(wait) = reply.retry_after {
            put(header::RETRY_AFTER, &seconds(wait).to_string());
        }
        if let Some(limited) = &reply.limited {
            let (name, quota) = (limited.policy, limited.quota);
            // Places at the same time have no window (RateLimit header fields draft, Quota Unit).
            let policy = if limited.concurrent {
                format!("\"{name}\";q={quota};qu=\"concurrent-requests\"")
            } else {
                format!("\"{name}\";q={quota};w={}", seconds(limited.window))
            };
            put(HeaderName::from_static("ratelimit-policy"), &policy);
            put(
                HeaderName::from_static("ratelimit"),
                &format!("\"{name}\";r=0;t={}", seconds(limited.retry_after)),
            );
        }
        if let Some(allow) = reply.allow {
            put(header::ALLOW, allow);
        }
        if let Some(scopes) = &reply.needs_scopes {
            let metadata = metadata_url(&self.base, self.tenant.as_ref());
            headers.insert(
                header::WWW_AUTHENTICATE,
                bearer::challenge(Challenge::InsufficientScope(scopes), &metadata),
            );
        }
        response
    }
}

fn seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

/// Reads and drops a body that is refused, within reason: a client that still
/// writes would lose the answer to a reset connection.
async fn drained(body: Body) {
    let mut body = Limited::new(body, DRAINED);
    let reading = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = tokio::time::timeout(BODY_PATIENCE, reading).await;
}

fn too_large(limit: usize) -> Response {
    (
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("The body may have at most {limit} bytes.\n"),
    )
        .into_response()
}

fn too_many(wait: Duration) -> Response {
    let headers = [(header::RETRY_AFTER, seconds(wait).to_string())];
    (
        StatusCode::TOO_MANY_REQUESTS,
        headers,
        "Too many failed sign-ins from this address. Wait, then send a valid token.\n",
    )
        .into_response()
}

fn keys_unavailable() -> Response {
    let reply = mcp::unavailable(
        None,
        "The issuer's keys cannot be had at the moment. Retry shortly.",
        Some(Duration::from_secs(5)),
    );
    let body = reply
        .body
        .map(|body| body.as_str().to_owned())
        .unwrap_or_default();
    let headers = [
        (header::RETRY_AFTER, "5"),
        (header::CONTENT_TYPE, "application/json"),
    ];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
}

fn mcp_headers(headers: &HeaderMap) -> McpHeaders {
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
    };
    let params = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("mcp-param-"))
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), value.trim().to_owned())
        });
    McpHeaders {
        protocol_version: text("mcp-protocol-version"),
        method: text("mcp-method"),
        name: text("mcp-name"),
        session: text("mcp-session-id"),
        params: params.collect(),
        traceparent: text("traceparent"),
        last_event_id: text("last-event-id"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptable_media_types_are_read_from_any_form() {
        let of = |lines: &[&'static str]| {
            let headers: HeaderMap = lines
                .iter()
                .map(|line| (header::ACCEPT, HeaderValue::from_static(line)))
                .collect();
            let accept = accept(&headers);
            (accept.json, accept.stream)
        };
        assert_eq!(of(&[]), (true, true));
        assert_eq!(of(&["application/json, text/event-stream"]), (true, true));
        assert_eq!(
            of(&["application/json", "Text/Event-Stream;q=0.5"]),
            (true, true)
        );
        assert_eq!(of(&["application/json;q=0, text/*"]), (false, true));
        assert_eq!(of(&["text/html"]), (false, false));
        assert_eq!(of(&["*/*"]), (true, true));
    }
}
