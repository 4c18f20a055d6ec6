//! What an upstream says about a request in flight, told apart: the answer, its
//! progress and log messages, requests of its own, and changes of its lists.

use std::sync::Arc;

use tokio::sync::{broadcast, watch};

use super::asking::Asks;
use super::patience::Patience;
use super::{EventSender, UpstreamError, UpstreamRequest};
use crate::protocol::{
    Json, LogLevel, Message, Notification, Request, RequestId, Response, Untrusted, UpstreamEvent,
    meta,
};

/// Word of resources that waits for a slow reader.
const BACKLOG: usize = 256;

/// What a server says of single resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// The resource of this URI changed.
    Updated(String),
    /// It knows of no subscription any more.
    Forgotten,
}

/// Counts what makes an upstream's lists worth reading again, and hands on its word
/// of single resources.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    count: Arc<watch::Sender<u64>>,
    news: broadcast::Sender<News>,
}

impl Changes {
    pub(super) fn new() -> Self {
        Self {
            count: Arc::new(watch::Sender::new(0)),
            news: broadcast::Sender::new(BACKLOG),
        }
    }

    pub(super) fn bump(&self) {
        self.count
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Hands word of a resource on, if anybody listens.
    pub(super) fn tell(&self, news: News) {
        let _ = self.news.send(news);
    }

    pub(super) fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }

    /// Takes what is about no request in flight; false where it is.
    pub(super) fn take(&self, said: &Said) -> bool {
        match said {
            Said::ListChanged => self.bump(),
            Said::Updated(uri) => self.tell(News::Updated(uri.clone())),
            Said::Progress { .. }
            | Said::Log { .. }
            | Said::ElicitationComplete(_)
            | Said::TakenBack(_)
            | Said::Other => return false,
        }
        true
    }
}

/// What belongs to one request of a caller beside the request itself.
#[derive(Debug)]
pub(super) struct Line {
    events: EventSender,
    pub(super) patience: Arc<Patience>,
}

impl Line {
    pub(super) fn new(events: EventSender, patience: Arc<Patience>) -> Self {
        Self { events, patience }
    }
}

/// Where the events of one request go, and which of them are wanted.
#[derive(Clone, Debug)]
pub(super) struct Ear {
    id: i64,
    progress: bool,
    log_level: Option<LogLevel>,
    events: EventSender,
    asks: Option<Arc<Asks>>,
}

impl Ear {
    pub(super) fn new(id: i64, request: &UpstreamRequest, line: &Line) -> Self {
        let asks = || {
            let capabilities = request.capabilities.clone();
            let patience = Arc::clone(&line.patience);
            Asks::new(capabilities, patience, request.patience, request.pooled)
        };
        Self {
            id,
            progress: request.progress,
            log_level: request.log_level,
            events: line.events.clone(),
            asks: request.may_be_asked().then(asks),
        }
    }

    /// The ear of a request whose events nobody wants.
    pub(super) fn deaf(id: i64) -> Self {
        Self {
            id,
            progress: false,
            log_level: None,
            events: tokio::sync::mpsc::channel(1).0,
            asks: None,
        }
    }

    pub(super) fn id(&self) -> i64 {
        self.id
    }

    /// Whether any event is wanted.
    pub(super) fn listens(&self) -> bool {
        self.progress || self.log_level.is_some() || self.asks.is_some()
    }

    /// What its caller can be asked.
    pub(super) fn asks(&self) -> Option<&Arc<Asks>> {
        self.asks.as_ref()
    }

    /// The server takes one of its requests back.
    pub(super) fn take_back(&self, id: &str) {
        if let Some(asks) = &self.asks {
            asks.take_back(id);
        }
    }

    /// The event that a notification is for this request, if it is wanted.
    pub(super) fn event(&self, said: &Said) -> Option<UpstreamEvent> {
        match said {
            Said::Progress { token, params } => (self.progress && *token == Some(self.id))
                .then(|| UpstreamEvent::Progress(params.clone())),
            Said::Log { level, params } => {
                let wanted = self.log_level.is_some_and(|least| *level >= least);
                wanted.then(|| UpstreamEvent::Log(*level, params.clone()))
            }
            Said::ElicitationComplete(params) => self
                .asks
                .is_some()
                .then(|| UpstreamEvent::ElicitationComplete(params.clone())),
            Said::ListChanged | Said::Updated(_) | Said::TakenBack(_) | Said::Other => None,
        }
    }

    /// Finds out when the server has asked all that it asks at once, and says so; at
    /// most once at a time. `pinged`: done when the server has answered a `ping`.
    pub(super) fn gathering<F: Future<Output = ()>>(
        &self,
        pinged: F,
    ) -> Option<impl Future<Output = ()> + use<F>> {
        let asks = self.asks.clone().filter(|asks| asks.begins_to_gather())?;
        let ear = self.clone();
        Some(async move {
            asks.gather(pinged).await;
            ear.send(UpstreamEvent::AskedAll).await;
        })
    }

    /// Hands an event on and waits until there is room; a receiver that is gone is
    /// no reason to stop.
    pub(super) async fn send(&self, event: UpstreamEvent) {
        let _ = self.events.send(Untrusted::new(event)).await;
    }

    /// Hands an event on if there is room for it at once.
    pub(super) fn try_send(&self, event: UpstreamEvent) -> bool {
        self.events.try_send(Untrusted::new(event)).is_ok()
    }
}

/// A notification, by what it means here.
#[derive(Debug)]
pub(super) enum Said {
    /// Progress of the request with this token.
    Progress {
        /// The token, where it is one of ours.
        token: Option<i64>,
        /// The params without the token.
        params: Json,
    },
    /// A log message.
    Log {
        /// Its severity.
        level: LogLevel,
        /// The params without a subscription id.
        params: Json,
    },
    /// A list changed.
    ListChanged,
    /// What the user was sent to a URL for is done.
    ElicitationComplete(Json),
    /// The server does not want its own request with this id answered any more.
    TakenBack(String),
    /// The resource of this URI changed.
    Updated(String),
    /// Nothing of use here.
    Other,
}

impl Said {
    pub(super) fn of(notification: &Notification) -> Self {
        let params = || {
            notification
                .params
                .clone()
                .filter(Json::is_object)
                .unwrap_or_else(Json::empty_object)
        };
        match notification.method.as_str() {
            "notifications/progress" => {
                let params = params();
                let token = params.get(meta::PROGRESS_TOKEN);
                Self::Progress {
                    token: token.and_then(|token| token.integer()),
                    params: params.without_members(|name| name == meta::PROGRESS_TOKEN),
                }
            }
            "notifications/message" => {
                let params = without_subscription(params());
                let level = params
                    .get("level")
                    .and_then(|level| LogLevel::parse(&level.string()?));
                level.map_or(Self::Other, |level| Self::Log { level, params })
            }
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => Self::ListChanged,
            "notifications/resources/updated" => {
                let uri = params().get("uri");
                let uri = uri.as_ref().and_then(Json::string);
                uri.map_or(Self::Other, |uri| Self::Updated(uri.into_owned()))
            }
            "notifications/elicitation/complete" => Self::ElicitationComplete(params()),
            "notifications/cancelled" => {
                let id = params().get("requestId").and_then(RequestId::new);
                id.map_or(Self::Other, |id| Self::TakenBack(id.key()))
            }
            _ => Self::Other,
        }
    }
}

fn without_subscription(params: Json) -> Json {
    match params.get("_meta") {
        Some(own) if own.get(meta::SUBSCRIPTION_ID).is_some() => params.with_member(
            "_meta",
            &own.without_members(|name| name == meta::SUBSCRIPTION_ID),
        ),
        _ => params,
    }
}

/// What one message means to the request that is waited for.
#[derive(Debug)]
pub(super) enum Heard {
    /// Its answer.
    Answer(Result<Json, UpstreamError>),
    /// The server asks something of us.
    Asked(Request),
    /// Something that has been dealt with.
    Nothing,
}

/// Takes a message from a stream that belongs to one request.
pub(super) async fn hear(
    json: &Json,
    ear: &Ear,
    changes: &Changes,
) -> Result<Heard, UpstreamError> {
    match read(json)? {
        Message::Response(response) => answer(response, ear.id).map(Heard::Answer),
        Message::Request(request) => Ok(Heard::Asked(request)),
        Message::Notification(notification) => {
            let said = Said::of(&notification);
            if changes.take(&said) {
                // It is about no request.
            } else if let Said::TakenBack(id) = &said {
                ear.take_back(id);
            } else if let Some(event) = ear.event(&said) {
                ear.send(event).await;
            }
            Ok(Heard::Nothing)
        }
        Message::Batch(_) => Err(UpstreamError::Garbage {
            what: "a batch inside a batch",
        }),
    }
}

/// Reads an envelope.
pub(super) fn read(json: &Json) -> Result<Message, UpstreamError> {
    Message::read(json).map_err(|_| UpstreamError::Garbage {
        what: "JSON that is no JSON-RPC message",
    })
}

/// Checks that a response is for the request `id`. An error whose id could not
/// be read (`null`) on that request's own stream is about it.
fn answer(response: Response, id: i64) -> Result<Result<Json, UpstreamError>, UpstreamError> {
    let ours = match &response.id {
        Some(given) => given.json().integer() == Some(id),
        None => response.outcome.is_err(),
    };
    if !ours {
        return Err(UpstreamError::Garbage {
            what: "a response to something that was not asked",
        });
    }
    Ok(outcome(response.outcome))
}

/// A response's result, or its error as ours.
pub(super) fn outcome(outcome: Result<Json, Json>) -> Result<Json, UpstreamError> {
    match outcome {
        Ok(result) if result.is_object() => Ok(result),
        Ok(_) => Err(UpstreamError::Garbage {
            what: "a result that is no object",
        }),
        Err(error) => Err(rpc(&error)),
    }
}

/// A JSON-RPC error object as our error.
pub(super) fn rpc(error: &Json) -> UpstreamError {
    let Some(code) = error.get("code").and_then(|code| code.integer()) else {
        return UpstreamError::Garbage {
            what: "an error without a code",
        };
    };
    let message = error.get("message");
    let message = message.as_ref().and_then(Json::string).unwrap_or_default();
    UpstreamError::Rpc {
        code,
        message: Untrusted::new(message.into_owned()),
        data: error.get("data").map(Untrusted::new),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;

    fn ear(
        progress: bool,
        level: Option<LogLevel>,
    ) -> (Ear, mpsc::Receiver<Untrusted<UpstreamEvent>>) {
        let (sender, receiver) = mpsc::channel(4);
        let mut request = UpstreamRequest::own("tools/call", Json::empty_object(), Instant::now());
        request.progress = progress;
        request.log_level = level;
        let line = Line::new(sender, Patience::new(Instant::now(), None));
        (Ear::new(5, &request, &line), receiver)
    }

    async fn said(ear: &Ear, text: &'static str) -> Result<Heard, UpstreamError> {
        hear(&Json::from_checked(text), ear, &Changes::new()).await
    }

    #[tokio::test]
    async fn progress_loses_our_token_and_foreign_tokens_are_not_heard() {
        let (ear, mut events) = ear(true, None);
        let own = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":0.5,"x":1}}"#;
        let foreign = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":6,"progress":1}}"#;
        said(&ear, own).await.unwrap();
        said(&ear, foreign).await.unwrap();
        let Ok(event) = events.try_recv() else {
            panic!("no progress")
        };
        let UpstreamEvent::Progress(params) = event.open() else {
            panic!("no progress")
        };
        assert_eq!(params.as_str(), r#"{"progress":0.5,"x":1}"#);
        assert!(events.try_recv().is_err());
    }

    #[tokio::test]
    async fn log_messages_come_only_to_who_asked_and_from_the_level_on() {
        let warning = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":1,"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}"#;
        let (deaf, mut none) = ear(true, None);
        said(&deaf, warning).await.unwrap();
        assert!(none.try_recv().is_err());
        let (strict, mut none) = ear(false, Some(LogLevel::Error));
        said(&strict, warning).await.unwrap();
        assert!(none.try_recv().is_err());
        let (open, mut some) = ear(false, Some(LogLevel::Info));
        said(&open, warning).await.unwrap();
        let Ok(event) = some.try_recv() else {
            panic!("no message")
        };
        let UpstreamEvent::Log(LogLevel::Warning, params) = event.open() else {
            panic!("no message")
        };
        assert_eq!(
            params.as_str(),
            r#"{"level":"warning","data":1,"_meta":{}}"#
        );
    }

    #[tokio::test]
    async fn only_a_response_with_our_id_is_the_answer() {
        let (ear, _events) = ear(false, None);
        let ours = said(&ear, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#).await;
        assert!(matches!(ours, Ok(Heard::Answer(Ok(_)))));
        let unread = said(
            &ear,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#,
        )
        .await;
        assert!(matches!(
            unread,
            Ok(Heard::Answer(Err(UpstreamError::Rpc { code: -32700, .. })))
        ));
        for wrong in [
            r#"{"jsonrpc":"2.0","id":6,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"5","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"id":5,"result":{}}"#,
            "[[]]",
        ] {
            assert!(
                matches!(said(&ear, wrong).await, Err(UpstreamError::Garbage { .. })),
                "{wrong}"
            );
        }
        let scalar = said(&ear, r#"{"jsonrpc":"2.0","id":5,"result":7}"#).await;
        assert!(matches!(
            scalar,
            Ok(Heard::Answer(Err(UpstreamError::Garbage { .. })))
        ));
    }

    #[tokio::test]
    async fn a_full_channel_holds_the_upstream_back_and_a_closed_one_does_not() {
        let (ear, events) = ear(true, None);
        let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}"#;
        for _ in 0..4 {
            said(&ear, progress).await.unwrap();
        }
        let fifth =
            tokio::time::timeout(std::time::Duration::from_millis(30), said(&ear, progress));
        assert!(fifth.await.is_err());
        drop(events);
        said(&ear, progress).await.unwrap();
    }
}
