//! What legacy clients say without being asked.

use std::sync::Arc;

use crate::ids::TenantId;
use crate::limits::Cost;
use crate::protocol::{Notification, RequestId};
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
            let context = &inbound.context;
            // Each upstream hears of it: it costs what a list does.
            if server.pipeline.limits.admit(context, Cost::Browse).is_ok() {
                let key = CallerKey(session.caller_key(context.principal().key().as_bytes()));
                let news = relay::roots_changed(session.id, context.tenant_id(), key);
                roots_changed(server, context.tenant_id().clone(), key);
                server.relay.announce(news);
            }
        }
        _ => {}
    }
}

/// Tells the upstreams that keep a session for this one.
pub(super) fn roots_changed(server: &Arc<Server>, tenant: TenantId, key: CallerKey) {
    let server = Arc::clone(server);
    tokio::spawn(async move {
        let catalog = &server.pipeline.catalog;
        catalog.roots_changed(&tenant, key).await;
    });
}
