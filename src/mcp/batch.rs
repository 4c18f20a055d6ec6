//! Batches, which only 2025-03-26 has: each member is charged, checked and
//! recorded by itself; one array answers them (`rules.md` §1.6).

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;

use crate::pipeline::Refusal;
use crate::protocol::json::ArrayBuilder;
use crate::protocol::{Json, Message, RequestId, RequestMeta, Version};

use super::answers::Reply;
use super::session::Session;
use super::{Answer, Inbound, Server, call, era, legacy, notices, replies};

/// Most members of a batch.
const MOST: usize = 20;

/// Answers a batch, or refuses it whole.
pub(super) async fn post(
    server: &Arc<Server>,
    inbound: Inbound,
    members: Vec<Json>,
    body: &Bytes,
) -> Answer {
    let session = match session(server, &inbound).await {
        Ok(session) => session,
        Err(reply) => return reply.into(),
    };
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
        return era::refuse(server, &inbound, body, None, Refusal::InvalidRequest(words))
            .await
            .into();
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

/// The session, where it is one that has batches. One that is gone is told as
/// for a single message, so that the client opens another.
async fn session(server: &Arc<Server>, inbound: &Inbound) -> Result<Option<Session>, Reply> {
    let header = inbound.headers.protocol_version.as_deref();
    if inbound.headers.session.is_none() || header.is_some_and(Version::is_modern_date) {
        return Ok(None);
    }
    let session = legacy::session(server, inbound).await?;
    Ok((session.version == Version::V2025_03_26).then_some(session))
}

/// One member's reply; nothing for notifications and responses.
async fn one(
    server: &Arc<Server>,
    inbound: &Inbound,
    session: &Session,
    member: Json,
) -> Option<Reply> {
    let bytes = member.as_str().len();
    let refused = async |id: Option<RequestId>, words: &str| {
        let refusal = Refusal::InvalidRequest(words.to_owned());
        let text = Bytes::from(member.as_str().to_owned());
        era::refuse(server, inbound, &text, id.as_ref(), refusal).await
    };
    match Message::read(&member) {
        Ok(Message::Request(request)) => {
            if !legacy::run_here(&request.method) {
                return Some(legacy::method(server, inbound, &request, session).await);
            }
            let meta = RequestMeta::of(request.params.as_ref());
            let caller = legacy::caller(session, inbound, &request, bytes);
            let manner = legacy::manner(session.version);
            Some(
                match call::start(server, inbound.again(), request, meta, caller, manner) {
                    Ok(running) => running.reply().await,
                    Err(refused) => refused.await,
                },
            )
        }
        Ok(Message::Notification(notification)) => {
            notices::hear(server, inbound, session, &notification);
            None
        }
        Ok(Message::Response(given)) => {
            replies::answered(server, session, &given).await;
            None
        }
        Ok(Message::Batch(_)) => Some(refused(None, "a batch may not hold a batch").await),
        Err(fault) => Some(refused(fault.id, fault.reason).await),
    }
}
