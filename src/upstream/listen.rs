//! Hears that a server's lists or resources changed, while nothing is asked of it:
//! `subscriptions/listen` of a modern server, the GET stream of a legacy session.
//! One listener per server, started by the gateway's own requests.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};

use super::backoff::Backoff;
use super::hearing::{Changes, Ear, News, Said, read};
use super::http::Http;
use super::link::{Answer, Reading};
use super::profile::Profile;
use super::resumption::open_stream;
use super::session::{Face, Session};
use super::sse::SseParser;
use super::{Credential, UpstreamError, UpstreamRequest, message, modern};
use crate::protocol::{Json, Message, Notification};

/// Longest silence of a stream before it is opened anew.
const SILENCE: Duration = Duration::from_mins(10);
/// A stream that lived so long was a good one: the next pause is short again.
const GOOD: Duration = Duration::from_secs(30);
/// Pauses between attempts.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Until a server has begun to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// The first message of a modern server's stream.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The listener of one server.
#[derive(Default)]
pub(super) struct Listening {
    current: Mutex<Option<Current>>,
    /// The newest credential, for the next time a stream is opened.
    credential: Mutex<Option<Credential>>,
}

struct Current {
    to: Listened,
    task: AbortHandle,
}

/// What is listened to. Held, so that a legacy session is not closed meanwhile.
#[derive(Clone)]
enum Listened {
    Server(Arc<Profile>),
    Session(Arc<Session>),
}

impl Listened {
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server(a), Self::Server(b)) => Arc::ptr_eq(a, b),
            (Self::Session(a), Self::Session(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// How a stream ended.
enum End {
    /// The server has no such stream to give.
    NotOffered,
    /// The server does not know the session.
    Gone,
    /// It closed, or could not be opened; with the pause the server asked for.
    Closed(Option<Duration>),
    /// Other resources are to be heard of: another stream takes its place.
    Renewed,
}

impl Listening {
    /// Listens to a modern server.
    pub(super) fn to_server(
        &self,
        http: &Arc<Http>,
        profile: &Arc<Profile>,
        request: &UpstreamRequest,
    ) {
        lock(&self.credential).clone_from(&request.credential);
        self.start(http, Listened::Server(Arc::clone(profile)), |http| {
            listen_to_server(Arc::clone(http))
        });
    }

    /// Listens to the gateway's own session at a legacy server.
    pub(super) fn to_session(
        &self,
        http: &Arc<Http>,
        profile: &Arc<Profile>,
        session: &Arc<Session>,
    ) {
        if !session.profile().abilities.announces() {
            return;
        }
        let to = if session.face().is_session() {
            Listened::Session(Arc::clone(session))
        } else {
            Listened::Server(Arc::clone(profile))
        };
        let face = Arc::clone(session.face());
        self.start(http, to, |http| {
            let changes = http.changes.clone();
            listen_to_session(face, Some(changes))
        });
    }

    fn start<F>(&self, http: &Arc<Http>, to: Listened, listen: impl FnOnce(&Arc<Http>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut current = lock(&self.current);
        if http.stop.is_cancelled() || current.as_ref().is_some_and(|now| now.to.is(&to)) {
            return;
        }
        if let Some(old) = current.take() {
            old.task.abort();
        }
        // Whoever it is now knows of no subscription yet.
        lock(&http.subscribed).clear();
        http.changes.tell(News::Forgotten);
        let task = http.tasks.spawn(listen(http)).abort_handle();
        *current = Some(Current { to, task });
    }

    /// Stops listening.
    pub(super) fn end(&self) {
        if let Some(current) = lock(&self.current).take() {
            current.task.abort();
        }
    }
}

/// Hears what a caller's session says on its own stream for as long as the
/// session lasts.
pub(super) fn follow(http: &Http, session: &Session) {
    if session.start_following() {
        let face = Arc::clone(session.face());
        http.tasks.spawn(listen_to_session(face, None));
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen_to_server(http: Arc<Http>) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let stop = http.stop.clone();
    loop {
        let began = Instant::now();
        let end = tokio::select! {
            () = stop.cancelled() => return,
            end = server_stream(&http) => end,
        };
        match end {
            End::Closed(_) => {}
            End::Renewed => continue,
            End::NotOffered | End::Gone => {
                tracing::debug!(upstream.id = %http.id, "the upstream does not announce changes");
                return;
            }
        }
        pause(&mut backoff, began, None, &stop).await;
        // What changed while nobody listened is not told again.
        http.changes.bump();
    }
}

async fn listen_to_session(face: Arc<Face>, changes: Option<Changes>) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    let mut last_id = None;
    loop {
        let began = Instant::now();
        let end = tokio::select! {
            () = face.stop.cancelled() => return,
            end = session_stream(&face, &mut last_id, changes.as_ref()) => end,
        };
        let retry = match end {
            End::NotOffered => return,
            End::Gone => {
                pause(&mut backoff, began, None, &face.stop).await;
                face.lose();
                if let Some(changes) = changes {
                    changes.bump();
                }
                return;
            }
            End::Closed(retry) => retry,
            End::Renewed => None,
        };
        pause(&mut backoff, began, retry, &face.stop).await;
        if last_id.is_none()
            && let Some(changes) = &changes
        {
            changes.bump();
        }
    }
}

async fn pause(
    backoff: &mut Backoff,
    began: Instant,
    asked: Option<Duration>,
    stop: &tokio_util::sync::CancellationToken,
) {
    if began.elapsed() >= GOOD {
        backoff.reset();
    }
    let length = backoff.pause().max(asked.unwrap_or_default());
    let _ = timeout(length.min(LONGEST_PAUSE), stop.cancelled()).await;
}

/// One `subscriptions/listen` stream of a modern server.
async fn server_stream(http: &Http) -> End {
    let mut wanted = http.wanted.subscribe();
    let filter = {
        let abilities = http
            .profile
            .load()
            .as_ref()
            .map(|profile| profile.abilities);
        abilities
            .unwrap_or_default()
            .filter(&*wanted.borrow_and_update())
    };
    let id = http.next_id();
    let credential = lock(&http.listening.credential).clone();
    let headers = modern::own_headers("subscriptions/listen", credential.as_ref());
    let opened = timeout(PATIENCE, async {
        let answer = http
            .link
            .post(headers, message::listen(id, &filter))
            .await?;
        http.link.read(answer).await
    });
    let reading = match opened.await {
        Ok(Ok(Answer::Messages(reading))) => reading,
        Ok(Ok(Answer::Refused(refusal))) if matches!(refusal.status, 400 | 404 | 405 | 501) => {
            return End::NotOffered;
        }
        Ok(Ok(Answer::Accepted)) => return End::NotOffered,
        Ok(Ok(Answer::Refused(_)) | Err(_)) | Err(_) => return End::Closed(None),
    };
    let mut reading = reading.not_silent_for(SILENCE);
    loop {
        let next = tokio::select! {
            next = reading.next() => next,
            Ok(()) = wanted.changed() => return End::Renewed,
        };
        let message = match next {
            Ok(Some(json)) => read(&json),
            Ok(None) | Err(_) => return End::Closed(None),
        };
        match message {
            Ok(Message::Notification(said)) => {
                if said.method == ACKNOWLEDGED {
                    if !grants_any(&said) && filter.as_str() != "{}" {
                        return End::NotOffered;
                    }
                    // What changed before the stream stood is not told on it.
                    http.changes.bump();
                } else {
                    http.changes.take(&Said::of(&said));
                }
            }
            Ok(Message::Response(response)) if response.outcome.is_err() => {
                return End::NotOffered;
            }
            // The end that a server announces (Subscriptions, Graceful Closure).
            Ok(Message::Response(_)) => return End::Closed(None),
            Ok(Message::Request(_) | Message::Batch(_)) | Err(_) => {}
        }
    }
}

/// Whether an acknowledgement is of a stream on which anything will come.
fn grants_any(said: &Notification) -> bool {
    let granted = said
        .params
        .as_ref()
        .and_then(|params| params.get("notifications"));
    let given = |value: &Json| value.boolean() == Some(true) || value.elements().next().is_some();
    granted.is_some_and(|filter| filter.members().any(|(_, value)| given(&value)))
}

/// One GET stream of a legacy session.
async fn session_stream(
    face: &Arc<Face>,
    last_id: &mut Option<String>,
    changes: Option<&Changes>,
) -> End {
    let opened = timeout(PATIENCE, open_stream(face, last_id.as_deref())).await;
    face.stood.cancel();
    let mut reading = match opened {
        Ok(Ok(Ok(reading))) => reading.not_silent_for(SILENCE),
        Ok(Ok(Err(404))) => return End::Gone,
        Ok(Ok(Err(400 | 405 | 501))) => return End::NotOffered,
        Ok(Ok(Err(_)) | Err(_)) | Err(_) => return End::Closed(None),
    };
    if last_id.is_none()
        && let Some(changes) = changes
    {
        // What changed before the stream stood is not told on it.
        changes.bump();
    }
    let end = hear_session(face, &mut reading, changes).await;
    let parser = reading.parser();
    if let Some(id) = parser.and_then(|parser| parser.last_id()) {
        *last_id = Some(id.to_owned());
    }
    match end {
        // What cannot be read is not asked for again.
        UpstreamError::TooLarge { .. } | UpstreamError::Garbage { .. } => *last_id = None,
        _ => {}
    }
    End::Closed(parser.and_then(SseParser::retry))
}

/// Hears a session's stream to its end.
async fn hear_session(
    face: &Arc<Face>,
    reading: &mut Reading,
    changes: Option<&Changes>,
) -> UpstreamError {
    loop {
        let json = match reading.next().await {
            Ok(Some(json)) => json,
            Ok(None) => return UpstreamError::Broken,
            Err(fault) => return fault,
        };
        match read(&json) {
            Ok(Message::Request(request)) => {
                // It does not say for which; all are of one caller.
                let mut ears = face.ears();
                ears.sort_by_key(|ear| std::cmp::Reverse(ear.id()));
                let ears: Vec<&Ear> = ears.iter().collect();
                face.asked(&ears, &request).await;
            }
            Ok(Message::Notification(notification)) => {
                let said = Said::of(&notification);
                if matches!(said, Said::ListChanged | Said::Updated(_)) {
                    // A caller's own session is told of the same: the gateway's hears it.
                    if let Some(changes) = changes {
                        changes.take(&said);
                    }
                    continue;
                }
                for ear in face.ears() {
                    if let Said::TakenBack(id) = &said {
                        ear.take_back(id);
                    }
                    if let Some(event) = ear.event(&said) {
                        ear.send(event).await;
                    }
                }
            }
            Ok(Message::Response(_) | Message::Batch(_)) | Err(_) => {}
        }
    }
}
