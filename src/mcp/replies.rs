//! What a legacy client says about a question that it was asked: its reply, and how
//! far it is with it. Both go to the replica that asked.

use crate::protocol::{Json, Response, meta};

use super::questions::Questions;
use super::session::Session;
use super::{Server, relay};

/// The client tells how far it is with what it was asked: the token is the id that
/// it was asked under.
pub(super) fn progressed(server: &Server, session: &Session, params: &Json) {
    let token = params.get(meta::PROGRESS_TOKEN);
    let Some(id) = token.as_ref().and_then(Json::string) else {
        return;
    };
    let params = params.without_members(|name| name == meta::PROGRESS_TOKEN);
    match Questions::owner(&id) {
        Some(owner) if owner == server.relay.own() => {
            server.questions.progress(session.id, &id, params);
        }
        Some(owner) => {
            let message = relay::progressed(session.id, &id, &params);
            server.relay.tell(owner, &message);
        }
        None => {}
    }
}

/// Gives the reply to whoever asked.
pub(super) async fn answered(server: &Server, session: &Session, given: &Response) {
    let id = given.id.as_ref().and_then(|id| id.json().string());
    let owner = id.as_deref().and_then(Questions::owner);
    let (Some(id), Some(owner)) = (id, owner) else {
        return;
    };
    if owner == server.relay.own() {
        server
            .questions
            .reply(session.id, &id, given.outcome.clone());
    } else {
        let message = relay::replied(session.id, &id, &given.outcome);
        server.relay.send(owner, &message).await;
    }
}
