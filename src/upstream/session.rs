//! One legacy session at a server: how it is opened, spoken in, listened to and
//! closed (MCP 2025-11-25 transports, Session Management).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::asking::{self, Taken};
use super::hearing::{Ear, Heard, hear};
use super::http::Http;
use super::link::{Answer, Link, PROTOCOL_VERSION, Reading, SESSION_ID, add, base_headers};
use super::profile::{self, Profile};
use super::{CallerKey, Credential, UpstreamError, UpstreamRequest, message};
use crate::protocol::{ClientCapabilities, Json, LogLevel, Request, Version};

/// How long a message that waits for no result may take.
const ERRAND: Duration = Duration::from_secs(5);
/// Longest session id that is kept.
const LONGEST_ID: usize = 1024;

/// What a session's requests, streams and errands need of it.
pub(super) struct Face {
    pub(super) link: Arc<Link>,
    id: Option<String>,
    version: Version,
    credential: Option<Credential>,
    /// Requests in flight whose events may come by the session's own stream.
    ears: Mutex<HashMap<i64, Ear>>,
    /// The server does not know the session any more.
    lost: AtomicBool,
    ids: Arc<AtomicI64>,
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
                    let face = Arc::clone(self);
                    if let Some(gathering) = ear.gathering(async move { face.ping().await }) {
                        self.unless_stopped(gathering);
                    }
                }
                let face = Arc::clone(self);
                self.unless_stopped(async move {
                    while let Some(body) = question.next().await {
                        face.say(body).await;
                    }
                });
            }
        }
    }

    /// Runs beside everything else, until the session is over.
    fn unless_stopped(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Waits until the server has answered a `ping`, in whatever way.
    async fn ping(&self) {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        if let Err(fault) = self.tell(message::ping(id)).await {
            tracing::debug!(error = %fault, "a server did not answer a ping");
        }
    }

    /// Tells the server that the client's roots are others now.
    pub(super) async fn roots_changed(&self) {
        self.say(message::roots_changed()).await;
    }

    async fn say(&self, body: Bytes) {
        if let Err(fault) = self.tell(body).await {
            tracing::debug!(error = %fault, "a server could not be told what it waits for");
        }
    }

    /// Whether the server has forgotten the session.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
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
                ids: Arc::clone(&http.ids),
                stop: http.stop.child_token(),
                stood: CancellationToken::new(),
                tasks: http.tasks.clone(),
            }),
            profile,
            level: tokio::sync::Mutex::default(),
            followed: AtomicBool::new(false),
            tasks: http.tasks.clone(),
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.face.stop.cancel();
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

/// Opens a session for a client that can do this: `initialize`, then
/// `notifications/initialized`.
pub(super) async fn open(
    http: &Http,
    request: &UpstreamRequest,
) -> Result<Arc<Session>, UpstreamError> {
    let number = http.next_id();
    let credential = request.credential.as_ref();
    let headers = base_headers(credential);
    let declared = match request.caller {
        CallerKey::GATEWAY => ClientCapabilities::of_gateway().relayed(false),
        _ => request.declared(),
    };
    let body = message::initialize(number, &declared);
    let answer = http.link.post(headers, body).await?;
    let id = session_id(answer.header("mcp-session-id"))?;
    let reading = match http.link.read(answer).await? {
        Answer::Messages(reading) => reading,
        Answer::Accepted => {
            return Err(UpstreamError::Garbage {
                what: "nothing where an answer was due",
            });
        }
        Answer::Refused(refusal) => return Err(refusal.into_fault()),
    };
    let result = initialised(http, number, reading).await?;
    let mut profile = profile::of_initialize(&result)?;
    profile.sessionless = id.is_none();
    let session = Session::new(http, id, profile, credential);
    session.face.tell(message::initialized()).await?;
    Ok(session)
}

fn session_id(header: Option<&str>) -> Result<Option<String>, UpstreamError> {
    match header {
        None => Ok(None),
        Some(id)
            if !id.is_empty()
                && id.len() <= LONGEST_ID
                && id.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            Ok(Some(id.to_owned()))
        }
        Some(_) => Err(UpstreamError::Garbage {
            what: "a session id that is none",
        }),
    }
}

async fn initialised(
    http: &Http,
    number: i64,
    mut reading: Reading,
) -> Result<Json, UpstreamError> {
    let ear = Ear::deaf(number);
    while let Some(json) = reading.next().await? {
        if let Heard::Answer(answer) = hear(&json, &ear, &http.changes).await? {
            http.finish(reading);
            return answer;
        }
    }
    Err(UpstreamError::Broken)
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
