//! Another configuration takes the place of the running one: upstreams whose
//! connection is the same keep running, others are started and read before they
//! are shown, and those that are no more end when their calls have.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::catalogue::{Catalog, FIRST_READING, Sources};
use super::source::Source;
use crate::config::{self, Config};
use crate::credentials::Credentials;
use crate::ids::{TenantId, UpstreamId};
use crate::upstream::Upstream;

/// How long calls of an upstream that is no more may take to end.
const LAST_CALLS: Duration = Duration::from_secs(30);

impl Catalog {
    /// Takes a configuration. Upstreams are made by `build`; where one cannot be
    /// made, nothing changes.
    ///
    /// # Errors
    /// The first fault of `build`.
    pub async fn reconfigure<E>(
        &self,
        config: &Config,
        credentials: Arc<Credentials>,
        build: impl Fn(&UpstreamId, &config::Upstream) -> Result<Arc<dyn Upstream>, E>,
    ) -> Result<(), E> {
        let mut configured = self.configured.lock().await;
        let before = configured.take().unwrap_or_default();
        let plan = self.plan(&before, config, &build);
        let Plan { sources, to_read } = match plan {
            Ok(plan) => plan,
            Err(fault) => {
                *configured = Some(before);
                return Err(fault);
            }
        };
        self.credentials.store(Some(credentials));
        self.rules.store(Arc::new(config.tools.clone()));
        self.uris.store(Arc::new(config.resources.uri));
        for (id, source) in &sources {
            source.put_under(&config.tools);
            if let Some(settings) = config.upstreams.get(id) {
                source.settings.store(Arc::new(settings.clone()));
            }
        }
        let readings = to_read.iter().map(|source| self.read_only(source));
        // Who takes longer is read by the upkeep.
        let _ = tokio::time::timeout(FIRST_READING, join_all(readings)).await;
        let old = self.sources.swap(Arc::new(sources));
        let tenants: Vec<TenantId> = config.tenants.keys().cloned().collect();
        self.set_tenants(&tenants, &touched(&before, config));
        self.has_started();
        self.retire(&old);
        self.sources_changed.notify_one();
        *configured = Some(config.clone());
        Ok(())
    }

    fn plan<E>(
        &self,
        before: &Config,
        config: &Config,
        build: impl Fn(&UpstreamId, &config::Upstream) -> Result<Arc<dyn Upstream>, E>,
    ) -> Result<Plan, E> {
        let running = self.sources.load();
        let mut plan = Plan::default();
        for (id, settings) in &config.upstreams {
            let kept = running.get(id).filter(|source| {
                before.outgoing == config.outgoing
                    && same_connection(&source.settings.load(), settings)
            });
            let source = match kept {
                Some(source) => Arc::clone(source),
                None => Source::new(build(id, settings)?, settings.clone()),
            };
            let judged_alike = kept.is_some_and(|source| {
                let old = source.settings.load();
                before.resources == config.resources
                    && old.prefix == settings.prefix
                    && old.suspicious == settings.suspicious
            });
            if !judged_alike {
                plan.to_read.push(Arc::clone(&source));
            }
            plan.sources.insert(id.clone(), source);
        }
        Ok(plan)
    }

    /// Ends the sources that are no more, each when its calls have ended.
    fn retire(&self, old: &Sources) {
        let now = self.sources.load();
        for source in old.values() {
            if now
                .get(&source.id)
                .is_some_and(|kept| Arc::ptr_eq(kept, source))
            {
                continue;
            }
            source.stop.cancel();
            let upstream = Arc::clone(&source.upstream);
            let source = Arc::clone(source);
            tokio::spawn(async move {
                let quiet = async {
                    // The source, and this task: whoever calls holds another.
                    while Arc::strong_count(&upstream) > 2 {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                };
                let _ = tokio::time::timeout(LAST_CALLS, quiet).await;
                upstream.shutdown().await;
                tracing::info!(upstream.id = %source.id, "An upstream that is no longer configured has ended");
            });
        }
    }
}

#[derive(Default)]
struct Plan {
    sources: Sources,
    to_read: Vec<Arc<Source>>,
}

/// Whether nothing differs that the running upstream was made with; what the
/// catalogue alone reads may.
fn same_connection(a: &config::Upstream, b: &config::Upstream) -> bool {
    let without = |upstream: &config::Upstream| config::Upstream {
        prefix: String::new(),
        tenants: None,
        required: false,
        refresh: b.refresh,
        stale_for: b.stale_for,
        suspicious: b.suspicious,
        ..upstream.clone()
    };
    without(a) == without(b)
}

/// Tenants for whose callers the rules are others now.
fn touched(before: &Config, now: &Config) -> Vec<TenantId> {
    let same = |old: &config::Tenant, new: &config::Tenant| {
        old.tools == new.tools
            && old.resources == new.resources
            && old.prompts == new.prompts
            && old.roles == new.roles
            && old.hide_without_scopes == new.hide_without_scopes
    };
    let tenants = now.tenants.iter().filter(|(id, new)| {
        let old = before.tenants.get(*id);
        old.is_some_and(|old| !same(old, new))
    });
    tenants.map(|(id, _)| id.clone()).collect()
}
