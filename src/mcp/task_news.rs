//! Word of tasks on a listen stream (the extension `io.modelcontextprotocol/tasks`, Task
//! Status Notifications). The gateway looks at a task in its client's place, at the pace
//! that the task's upstream asks for, and tells what changed. So it works whether or not
//! an upstream announces anything, and what is told has gone the way of every
//! `tasks/get`: authorised anew, cleaned, and its end on record before it is told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, Method, Request, RequestId, RequestMeta};

use super::handling::Handling;
use super::{Inbound, Server, call, modern};

/// How long to wait between two looks where the upstream does not say.
const PAUSE: Duration = Duration::from_secs(1);
/// No task is looked at more often, or left alone for longer.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);
/// Words that wait for a slow reader.
const BACKLOG: usize = 16;

/// What happens to some tasks. Looking ends when this is dropped.
pub(super) struct TaskNews {
    news: mpsc::Receiver<Json>,
    _looking: JoinSet<()>,
}

impl TaskNews {
    /// Of these tasks, for the client of this request.
    pub(super) fn of(
        server: &Arc<Server>,
        inbound: &Inbound,
        meta: &RequestMeta,
        ids: &BTreeSet<String>,
    ) -> Self {
        let (told, news) = mpsc::channel(BACKLOG);
        let mut looking = JoinSet::new();
        for id in ids {
            let look = Look {
                server: Arc::clone(server),
                inbound: inbound.again(),
                meta: meta.clone(),
                id: id.clone(),
            };
            looking.spawn(look.on(told.clone()));
        }
        Self {
            news,
            _looking: looking,
        }
    }

    /// The next that happens: the params of its notification. Never ends.
    pub(super) async fn next(&mut self) -> Json {
        match self.news.recv().await {
            Some(params) => params,
            None => std::future::pending().await,
        }
    }
}

/// Looks at one task.
struct Look {
    server: Arc<Server>,
    inbound: Inbound,
    meta: RequestMeta,
    id: String,
}

impl Look {
    /// Tells each change until the task is over or out of reach.
    async fn on(mut self, told: mpsc::Sender<Json>) {
        let mut last = None;
        while let Some(task) = self.look().await {
            let text = |name: &str| Some(task.get(name)?.string()?.into_owned());
            let status = text("status");
            let now = (status.clone(), text("statusMessage"));
            if last.as_ref() != Some(&now) {
                last = Some(now);
                if told.send(task.clone()).await.is_err() {
                    return;
                }
            }
            if matches!(
                status.as_deref(),
                Some("completed" | "failed" | "cancelled")
            ) {
                return;
            }
            let wanted = task.get("pollIntervalMs").and_then(|time| time.integer());
            let wanted = wanted.and_then(|millis| u64::try_from(millis).ok());
            let pause = wanted.map_or(PAUSE, Duration::from_millis);
            tokio::time::sleep(pause.clamp(SHORTEST, LONGEST)).await;
        }
    }

    /// How it stands now; `None` where its client may not know.
    async fn look(&mut self) -> Option<Json> {
        let principal = Arc::clone(self.inbound.context.principal());
        self.inbound.context = (self.inbound.resolver)(&principal)?;
        let params = ObjectBuilder::new().text("taskId", &self.id).build();
        let bytes = params.as_str().len();
        let request = Request {
            id: RequestId::new(Json::from_integer(0))?,
            method: Method::GetTask.as_str().to_owned(),
            params: Some(params),
        };
        let attempt = modern::attempt(&self.inbound, &self.meta, bytes);
        let caller = modern::caller(attempt, &self.meta);
        let manner = modern::manner(Method::GetTask);
        let (inbound, meta) = (self.inbound.again(), self.meta.clone());
        let handling = Handling::unseen("tasks/get");
        let started = call::start(
            &self.server,
            inbound,
            request,
            meta,
            caller,
            manner,
            &handling,
        );
        let reply = match started {
            Ok(running) => running.reply().await,
            Err(refused) => refused.await,
        };
        let task = reply.body?.get("result")?;
        Some(task.without_members(|name| matches!(name, "resultType" | "_meta")))
    }
}
