//! Batches, which only 2025-03-26 has: each member is charged, checked and
//! recorded by itself; one array answers them (`rules.md` §1.6).

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::pipeline::Refusal;
use crate::protocol::json::ArrayBuilder;
use crate::protocol::{Json, Message, RequestMeta, Version, codes};

use super::answers::{self, Reply};
use super::session::Session;
use super::{Answer, Inbound, Server, call, era, legacy};

/// Most members of a batch.
const MOST: usize = 20;

/// Answers a batch, or refuses it whole.
pub(super) async fn post(
    server: &Arc<Server>,
    inbound: Inbound,
    members: Vec<Json>,
    body: &Bytes,
) -> Answer {
    let session = match inbound.headers.session.as_deref() {
        Some(id) => server
            .sessions
            .find(inbound.context.principal(), id)
            .await
            .ok(),
        None => None,
    };
    let session = session.filter(|session| session.version == Version::V2025_03_26);
    let fault = match &session {
        None => Some(
            "a body is one JSON-RPC message; batches exist only in sessions of 2025-03-26"
                .to_owned(),
        ),
        Some(_) if members.is_empty() => Some("a batch has at least one member".to_owned()),
        Some(_) if members.len() > MOST => Some(format!(
            "a batch has at most {MOST} members, got {}",
            members.len()
        )),
        Some(_) => None,
    };
    let (None, Some(session)) = (&fault, session) else {
        let words = fault.unwrap_or_default();
        return era::refuse(server, &inbound, body, None, Refusal::InvalidRequest(words)).await;
    };
    let replies = join_all(
        members
            .into_iter()
            .map(|member| one(server, &inbound, &session, member)),
    )
    .await;
    let bodies: Vec<Json> = replies
        .into_iter()
        .flatten()
        .filter_map(|reply| reply.body)
        .collect();
    if bodies.is_empty() {
        return Reply::empty(202).into();
    }
    Reply {
        status: 200,
        body: Some(ArrayBuilder::from_iter(&bodies).build()),
        ..Reply::default()
    }
    .into()
}

/// One member's reply; nothing for notifications and responses.
async fn one(
    server: &Arc<Server>,
    inbound: &Inbound,
    session: &Session,
    member: Json,
) -> Option<Reply> {
    let bytes = member.as_str().len();
    match Message::read(&member) {
        Ok(Message::Request(request)) if request.method == "initialize" => {
            let words = "`initialize` may not be part of a batch";
            Some(Reply::error(
                200,
                Some(&request.id),
                codes::INVALID_REQUEST,
                words,
                None,
            ))
        }
        Ok(Message::Request(request)) if request.method == "tools/call" => {
            let meta = RequestMeta::of(request.params.as_ref());
            let caller = legacy::caller(session, inbound, &request, bytes);
            let lower = legacy::lowering(session.version);
            Some(
                match call::start(server, inbound.again(), request, meta, caller, lower) {
                    Ok(running) => running.reply().await,
                    Err(refused) => refused.await,
                },
            )
        }
        Ok(Message::Request(request)) => {
            Some(legacy::method(server, inbound, &request, session).await)
        }
        Ok(Message::Notification(notification)) => {
            legacy::hear(server, session, &notification);
            None
        }
        Ok(Message::Response(_)) => None,
        Ok(Message::Batch(_)) => Some(invalid(None, "a batch may not hold a batch")),
        Err(fault) => Some(invalid(fault.id.as_ref(), fault.reason)),
    }
}

fn invalid(id: Option<&crate::protocol::RequestId>, words: &str) -> Reply {
    answers::of_refusal(id, Refusal::InvalidRequest(words.to_owned()), |json| json)
}
