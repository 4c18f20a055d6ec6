//! The resources that one stream watches, and what a client wants to hear of at all.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::select_all;

use crate::catalog::Watch;
use crate::protocol::Json;
use crate::upstream::Abilities;

/// Most resources of one stream.
const MOST: usize = 500;
/// Most tasks of one stream.
const MOST_TASKS: usize = 50;

/// What a client wants to hear of (MCP 2026-07-28 subscriptions, Notification Filter).
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) tools: bool,
    pub(super) resources: bool,
    pub(super) prompts: bool,
    pub(super) uris: BTreeSet<String>,
    /// Ids of tasks (the extension `io.modelcontextprotocol/tasks`).
    pub(super) tasks: BTreeSet<String>,
}

impl Wanted {
    /// Reads a filter, or says what is wrong with it.
    pub(super) fn of(filter: &Json) -> Result<Self, &'static str> {
        let flag = |name: &str| filter.get(name).and_then(|wanted| wanted.boolean()) == Some(true);
        let words = "`params.notifications.resourceSubscriptions` must be a list of URIs";
        let uris = names(filter, "resourceSubscriptions").ok_or(words)?;
        let words = "`params.notifications.taskIds` must be a list of ids of tasks";
        let tasks = names(filter, "taskIds").ok_or(words)?;
        if uris.len() > MOST || tasks.len() > MOST_TASKS {
            return Err("a stream has at most 500 resources and 50 tasks: open another");
        }
        Ok(Self {
            tools: flag("toolsListChanged"),
            resources: flag("resourcesListChanged"),
            prompts: flag("promptsListChanged"),
            uris,
            tasks,
        })
    }

    /// What there is of it: kinds of notifications that are not supported do not come
    /// (MCP 2026-07-28 subscriptions, Acknowledgment).
    #[must_use]
    pub(super) fn of_what_is(self, can: Abilities) -> Self {
        Self {
            tools: self.tools,
            resources: self.resources && can.resources,
            prompts: self.prompts && can.prompts,
            uris: if can.subscribe {
                self.uris
            } else {
                BTreeSet::new()
            },
            tasks: self.tasks,
        }
    }

    /// The changes of all lists, as legacy sessions hear them unasked.
    pub(super) fn all_lists() -> Self {
        Self {
            tools: true,
            resources: true,
            prompts: true,
            uris: BTreeSet::new(),
            tasks: BTreeSet::new(),
        }
    }
}

/// The strings of a list of the filter, none where it is absent; `None` where it is of
/// another form.
fn names(filter: &Json, list: &str) -> Option<BTreeSet<String>> {
    let Some(given) = filter.get(list).filter(|given| !given.is_null()) else {
        return Some(BTreeSet::new());
    };
    let all = given.as_str().starts_with('[');
    let all = all.then(|| given.elements())?;
    all.map(|name| name.string().map(std::borrow::Cow::into_owned))
        .collect()
}

/// Watches, by the URI that the client knows.
#[derive(Default)]
pub(super) struct Watching(BTreeMap<String, Watch>);

impl Watching {
    /// Watches these, as far as `watch` gives one, and no others.
    pub(super) fn set(&mut self, uris: &BTreeSet<String>, watch: impl Fn(&str) -> Option<Watch>) {
        self.0.retain(|uri, _| uris.contains(uri));
        for uri in uris {
            if !self.0.contains_key(uri)
                && let Some(watch) = watch(uri)
            {
                self.0.insert(uri.clone(), watch);
            }
        }
    }

    /// What is watched.
    pub(super) fn uris(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Waits for the next update of any of them.
    pub(super) async fn next(&mut self) -> String {
        if self.0.is_empty() {
            return std::future::pending().await;
        }
        let waits = self.0.iter_mut().map(|(uri, watch)| {
            Box::pin(async move {
                watch.updated().await;
                uri.clone()
            })
        });
        select_all(waits).await.0
    }
}
