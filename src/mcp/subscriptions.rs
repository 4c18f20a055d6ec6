//! `resources/subscribe` and `resources/unsubscribe` of legacy sessions. What a
//! session has subscribed to is a row; its GET stream, on whatever replica, listens.

use crate::pipeline::Refusal;
use crate::protocol::{Json, Request};
use crate::visibility;

use super::session::Session;
use super::{Inbound, Server, relay};

/// Most subscriptions of a session.
const MOST: usize = 500;
/// Longest URI that is kept.
const LONGEST: usize = 2_048;

/// Adds or removes a subscription. Whether the resource is hidden or missing, the
/// answer is the same; removing what was not there is no fault.
pub(super) async fn change(
    server: &Server,
    inbound: &Inbound,
    request: &Request,
    session: &Session,
    subscribe: bool,
) -> Result<Json, Refusal> {
    let uri = request.params.as_ref().and_then(|params| params.get("uri"));
    let uri = uri
        .as_ref()
        .and_then(Json::string)
        .ok_or_else(|| Refusal::MalformedParams("`params.uri` must be a string".to_owned()))?;
    let context = &inbound.context;
    let unknown = || Refusal::UnknownResource {
        uri: uri.clone().into_owned(),
    };
    if subscribe {
        if uri.len() > LONGEST {
            return Err(unknown());
        }
        let catalog = &server.pipeline.catalog;
        let view = catalog.view(context.tenant_id());
        visibility::see_resource(context, catalog, &view, &uri).map_err(|_| unknown())?;
        if session.subscriptions.len() >= MOST && !session.subscriptions.contains(&*uri) {
            return Err(Refusal::MalformedParams(format!(
                "a session has at most {MOST} subscriptions: end one first"
            )));
        }
    }
    let tenant = context.tenant_id();
    let kept = server
        .sessions
        .set_subscription(tenant, session, &uri, subscribe);
    kept.await.map_err(|_| Refusal::Failed {
        text: "The subscription could not be kept. Retry shortly.".to_owned(),
    })?;
    server.listeners.poke(session.id);
    server
        .relay
        .broadcast(&relay::session_changed(session.id))
        .await;
    Ok(Json::empty_object())
}
