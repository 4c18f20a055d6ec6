//! One legacy session at a server: how it is opened, spoken in, listened to and
//! closed (MCP 2025-11-25 transports, Session Management).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::http::header::{ACCEPT, CONTENT_TYPE};
use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::{self, Taken};
use super::hearing::Ear;
use super::http::Http;
use super::link::{
    Answer, LAST_EVENT_ID, Link, PROTOCOL_VERSION, Reading, SESSION_ID, add, base_headers,
};
use super::profile::Profile;
use super::{Credential, UpstreamError, message};
use crate::protocol::{LogLevel, Request, Version};

/// How long a message that waits for no result may take.
const ERRAND: Duration = Duration::from_secs(5);
/// How long to wait before a broken stream is taken up again, unless the server
/// said how long.
const RESUME: Duration = Duration::from_millis(200);
/// So often a stream is taken up again that gives nothing new.
const FRUITLESS: u32 = 5;

/// What a session's requests, streams and errands need of it.
pub(super) struct Face {
    link: Arc<Link>,
    id: Option<String>,
    version: Version,
    credential: Option<Credential>,
    /// Requests in flight whose events may come by the session's own stream.
    ears: Mutex<HashMap<i64, Ear>>,
    /// The server does not know the session any more.
    lost: AtomicBool,
    pub(super) stop: CancellationToken,
    /// Its own stream stands, or is not to be had.
    pub(super) stood: CancellationToken,
    tasks: TaskTracker,
}

/// A session. It is closed at the server when the last that uses it lets go.
pub(super) struct Session {
    face: Arc<Face>,
    profile: Profile,
    /// The least severe level that the server was told; it is only ever lowered,
    /// and each request hears what it asked for.
    pub(super) level: tokio::sync::Mutex<Option<LogLevel>>,
    followed: AtomicBool,
    opened: Instant,
    tasks: TaskTracker,
}

impl Face {
    /// The headers of every message of the session.
    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = base_headers(self.credential.as_ref());
        if let Some(id) = &self.id {
            add(&mut headers, SESSION_ID, id);
        }
        if self.version >= Version::V2025_06_18 {
            let version = HeaderValue::from_static(self.version.as_str());
            headers.insert(PROTOCOL_VERSION, version);
        }
        headers
    }

    /// Sends a notification or a response.
    pub(super) async fn tell(&self, body: Bytes) -> Result<(), UpstreamError> {
        let errand = async {
            let answer = self.link.post(self.headers(), body).await?;
            match self.link.read(answer).await {
                Ok(Answer::Refused(refusal)) => Err(refusal.into_fault()),
                Ok(Answer::Messages(reading)) => {
                    reading.linger().await;
                    Ok(())
                }
                Ok(Answer::Accepted) | Err(UpstreamError::Garbage { .. }) => Ok(()),
                Err(fault) => Err(fault),
            }
        };
        timeout(ERRAND, errand)
            .await
            .unwrap_or(Err(UpstreamError::TimedOut))
    }

    /// Takes a request of the server's for one of these that are in flight. The
    /// reply goes back when there is one; meanwhile the stream is heard on.
    pub(super) async fn asked(self: &Arc<Self>, ears: &[&Ear], request: &Request) {
        match asking::take(ears.iter().copied(), request) {
            (_, Taken::Answered(body)) => self.say(body).await,
            (ear, Taken::Asks(event, mut question)) => {
                if let Some(ear) = ear {
                    ear.send(event).await;
                }
                let face = Arc::clone(self);
                self.tasks.spawn(async move {
                    let stop = face.stop.clone();
                    let settled = async {
                        while let Some(body) = question.next().await {
                            face.say(body).await;
                        }
                    };
                    tokio::select! {
                        () = settled => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        }
    }

    async fn say(&self, body: Bytes) {
        if let Err(fault) = self.tell(body).await {
            tracing::debug!(error = %fault, "a server's request could not be answered");
        }
    }

    /// Whether the server has forgotten the session.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Its id, where the server keeps sessions.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Whether there is a session at all, or a server that keeps none.
    pub(super) fn is_session(&self) -> bool {
        self.id.is_some()
    }

    /// Notes that the server has forgotten the session, so that nobody closes it.
    pub(super) fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
        self.stop.cancel();
    }

    fn lock_ears(&self) -> MutexGuard<'_, HashMap<i64, Ear>> {
        self.ears.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests in flight that hear events.
    pub(super) fn ears(&self) -> Vec<Ear> {
        self.lock_ears().values().cloned().collect()
    }
}

impl Session {
    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    pub(super) fn face(&self) -> &Arc<Face> {
        &self.face
    }

    /// Whether its own stream is to be opened now; true once.
    pub(super) fn start_following(&self) -> bool {
        !self.followed.swap(true, Ordering::Relaxed)
    }

    pub(super) fn new(
        http: &Http,
        id: Option<String>,
        profile: Profile,
        credential: Option<&Credential>,
    ) -> Arc<Self> {
        Arc::new(Self {
            face: Arc::new(Face {
                link: Arc::clone(&http.link),
                id,
                version: profile.version,
                credential: credential.cloned(),
                ears: Mutex::default(),
                lost: AtomicBool::new(false),
                stop: http.stop.child_token(),
                stood: CancellationToken::new(),
                tasks: http.tasks.clone(),
            }),
            profile,
            level: tokio::sync::Mutex::default(),
            followed: AtomicBool::new(false),
            opened: Instant::now(),
            tasks: http.tasks.clone(),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.face.stop.cancel();
        if self.face.id.is_some() {
            let lasted = self.opened.elapsed();
            self.face.link.legs.session_over(self.face.version, lasted);
        }
        if self.face.id.is_none() || self.face.lost.load(Ordering::Relaxed) {
            return;
        }
        let face = Arc::clone(&self.face);
        if let Ok(runtime) = Handle::try_current() {
            let farewell = async move { face.link.delete(face.headers()).await.map(drop) };
            self.tasks.spawn_on(
                async move {
                    // A server need not allow it (405), and may be gone.
                    let _ = timeout(ERRAND, farewell).await;
                },
                &runtime,
            );
        }
    }
}

/// Takes up a stream that ended before its response (MCP 2025-11-25 transports,
/// Resumability), as often as it gives new event ids, and a few times without.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    last_id: Option<String>,
    retry: Option<Duration>,
    fruitless: u32,
}

impl Resumption {
    /// Notes where `reading` has ended, and how long the server wants to be left
    /// alone now, where it said so.
    pub(super) fn note(&mut self, reading: &Reading) -> Result<Option<Duration>, UpstreamError> {
        let parser = reading.parser().ok_or(UpstreamError::Broken)?;
        if parser.ids_seen() > 0 {
            self.last_id = parser.last_id().map(str::to_owned);
            self.fruitless = 0;
        } else {
            self.fruitless += 1;
        }
        self.retry = parser.retry().or(self.retry);
        if self.fruitless > FRUITLESS {
            return Err(UpstreamError::Broken);
        }
        let fits = self.last_id.as_deref().is_some_and(fits_a_header);
        fits.then_some(parser.retry()).ok_or(UpstreamError::Broken)
    }

    /// The stream, from behind the last event on.
    pub(super) async fn resume(&mut self, face: &Face) -> Result<Reading, UpstreamError> {
        loop {
            tokio::time::sleep(self.retry.unwrap_or(RESUME)).await;
            match open_stream(face, self.last_id.as_deref()).await {
                Ok(Ok(reading)) => return Ok(reading),
                Ok(Err(500..)) | Err(_) if self.fruitless < FRUITLESS => self.fruitless += 1,
                Ok(Err(_)) | Err(_) => return Err(UpstreamError::Broken),
            }
        }
    }
}

fn fits_a_header(text: &str) -> bool {
    HeaderValue::try_from(text).is_ok()
}

/// Opens a session's stream by GET, after `last_id` where there is one. The inner
/// error is the status of a server that does not give it.
pub(super) async fn open_stream(
    face: &Face,
    last_id: Option<&str>,
) -> Result<Result<Reading, u16>, UpstreamError> {
    let mut headers = face.headers();
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(id) = last_id {
        add(&mut headers, LAST_EVENT_ID, id);
    }
    let answer = face.link.get(headers).await?;
    let streams = answer.media_type().as_deref() == Some("text/event-stream");
    if answer.status == 200 && streams {
        return Ok(Ok(Reading::stream(answer, face.link.max_answer)));
    }
    // 200 with something else is as good as "not offered".
    Ok(Err(if answer.status == 200 {
        405
    } else {
        answer.status
    }))
}

/// A request that is under way. If it is dropped before it has landed, the server
/// is told (MCP 2025-11-25 cancellation): closing the stream says nothing to it.
pub(super) struct Flight<'a> {
    session: &'a Session,
    id: i64,
    under_way: bool,
}

impl<'a> Flight<'a> {
    pub(super) fn start(session: &'a Session, ear: &Ear) -> Self {
        let id = ear.id();
        if ear.listens() && session.face.is_session() {
            session.face.lock_ears().insert(id, ear.clone());
        }
        Self {
            session,
            id,
            under_way: true,
        }
    }

    /// The server has answered, or has refused before it began.
    pub(super) fn landed(&mut self) {
        self.under_way = false;
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let face = &self.session.face;
        face.lock_ears().remove(&self.id);
        if !self.under_way {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            let face = Arc::clone(face);
            let id = self.id;
            self.session.tasks.spawn_on(
                async move {
                    let _ = face.tell(message::cancelled(id)).await;
                },
                &runtime,
            );
        }
    }
}
