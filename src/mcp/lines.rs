//! Lines between replicas: what one of them holds (a parked call, a stream to be
//! taken up) is told message by message to the one that the client has reached.
//! Each message is a row in Postgres; numbers keep their order. A line whose other
//! end is silent is held until that replica counts as gone.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ids::ReplicaId;
use crate::protocol::Json;
use crate::protocol::json::ObjectBuilder;

use super::Server;
use super::relay::Relay;

/// Between looks at whether the other replica lives.
const DOUBT: Duration = Duration::from_secs(3);

/// The lines that end here, and those that begin here and may be hung up.
#[derive(Default)]
pub(super) struct Lines {
    ends: Mutex<HashMap<Uuid, mpsc::UnboundedSender<Json>>>,
    begun: Mutex<HashMap<Uuid, CancellationToken>>,
}

/// The receiving end. Dropped, the other replica is told.
pub(super) struct End {
    server: Arc<Server>,
    id: Uuid,
    from: ReplicaId,
    messages: mpsc::UnboundedReceiver<Json>,
    early: BTreeMap<i64, Json>,
    next: i64,
}

/// The sending end.
pub(super) struct Beginning {
    server: Arc<Server>,
    id: Uuid,
    to: ReplicaId,
    sent: i64,
    /// Fires when the other end has hung up.
    pub(super) hung_up: CancellationToken,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lines {
    /// Opens a line from another replica.
    pub(super) fn from(server: &Arc<Server>, from: ReplicaId) -> End {
        let id = crate::clock::new_call_id(&*server.clock).0;
        let (sender, messages) = mpsc::unbounded_channel();
        lock(&server.lines.ends).insert(id, sender);
        End {
            server: Arc::clone(server),
            id,
            from,
            messages,
            early: BTreeMap::new(),
            next: 1,
        }
    }

    /// Takes up the sending end of a line that another replica has opened.
    pub(super) fn to(server: &Arc<Server>, id: Uuid, to: ReplicaId) -> Beginning {
        let hung_up = CancellationToken::new();
        lock(&server.lines.begun).insert(id, hung_up.clone());
        Beginning {
            server: Arc::clone(server),
            id,
            to,
            sent: 0,
            hung_up,
        }
    }

    /// A message has come on a line.
    pub(super) fn heard(&self, id: Uuid, message: Json) {
        if let Some(end) = lock(&self.ends).get(&id) {
            let _ = end.send(message);
        }
    }

    /// The other end has hung up.
    pub(super) fn hung_up(&self, id: Uuid) {
        if let Some(token) = lock(&self.begun).get(&id) {
            token.cancel();
        }
    }
}

impl End {
    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// The next message's content, in order. `None` where the other replica is gone.
    pub(super) async fn next(&mut self) -> Option<Json> {
        loop {
            if let Some(message) = self.early.remove(&self.next) {
                self.next += 1;
                return message.get("say");
            }
            match timeout(DOUBT, self.messages.recv()).await {
                Ok(Some(message)) => {
                    let number = message.get("n").and_then(|number| number.integer());
                    self.early.insert(number.unwrap_or_default(), message);
                }
                Ok(None) => return None,
                Err(_) if self.server.relay.lives(self.from).await => {}
                Err(_) => return None,
            }
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        lock(&self.server.lines.ends).remove(&self.id);
        self.server.relay.tell(self.from, &hang_up(self.id));
    }
}

impl Beginning {
    /// Sends a message and waits until it is on its way.
    pub(super) async fn say(&mut self, say: &Json) {
        self.sent += 1;
        let message = Relay::about_line("line", self.id)
            .integer("n", self.sent)
            .json("say", say)
            .build();
        self.server.relay.send(self.to, &message).await;
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        lock(&self.server.lines.begun).remove(&self.id);
    }
}

fn hang_up(id: Uuid) -> Json {
    Relay::about_line("hung_up", id).build()
}

/// One thing said on a line.
pub(super) fn said(kind: &str, value: &Json) -> Json {
    ObjectBuilder::with_capacity(value.as_str().len() + 32)
        .json(kind, value)
        .build()
}
