//! What legacy clients say without being asked.

use std::sync::Arc;

use crate::ids::TenantId;
use crate::limits::Cost;
use crate::protocol::{Notification, RequestId};
use crate::tenancy::TenantContext;
use crate::upstream::CallerKey;

use super::session::Session;
use super::{Inbound, Server, relay, replies};

/// Acts on a notification. An unknown one is ignored (MCP 2025-11-25 cancellation, Error Handling).
pub(super) fn hear(
    server: &Arc<Server>,
    inbound: &Inbound,
    session: &Session,
    notification: &Notification,
) {
    let params = notification.params.as_ref();
    match notification.method.as_str() {
        "notifications/cancelled" => {
            let id = params.and_then(|params| params.get("requestId"));
            let Some(id) = id.and_then(RequestId::new) else {
                return;
            };
            if !server.inflight.cancel(session.id, &id.key()) {
                server
                    .relay
                    .announce(relay::cancelled(session.id, &id.key()));
            }
        }
        "notifications/progress" => {
            if let Some(params) = params {
                replies::progressed(server, session, params);
            }
        }
        "notifications/roots/list_changed" if session.capabilities.announces_roots() => {
            let (server, session) = (Arc::clone(server), session.clone());
            let context = inbound.context.clone();
            tokio::spawn(async move { announce_roots(&server, &context, &session).await });
        }
        _ => {}
    }
}

/// Lets all upstreams of a session know, through every replica. Each of them hears of it,
/// so it costs what a list does.
async fn announce_roots(server: &Arc<Server>, context: &TenantContext, session: &Session) {
    let limits = &server.pipeline.limits;
    if limits.admit(context, Cost::Browse).await.is_err() {
        return;
    }
    let key = CallerKey(session.caller_key(context.principal().key().as_bytes()));
    let news = relay::roots_changed(session.id, context.tenant_id(), key);
    server.relay.announce(news);
    let catalog = &server.pipeline.catalog;
    catalog.roots_changed(context.tenant_id(), key).await;
}

/// Tells the upstreams that keep a session for this one.
pub(super) fn roots_changed(server: &Arc<Server>, tenant: TenantId, key: CallerKey) {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let catalog = &server.pipeline.catalog;
        catalog.roots_changed(&tenant, key).await;
    });
}
