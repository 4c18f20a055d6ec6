//! From a configuration to what requests run under, and to the upstreams.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, anyhow};

use super::App;
use crate::catalog::Catalog;
use crate::clock::SharedClock;
use crate::config::{self, Config, Loaded};
use crate::credentials::Credentials;
use crate::http::{Base, EdgeLimiter, Snapshot};
use crate::identity::Identity;
use crate::ids::UpstreamId;
use crate::oauth;
use crate::outgoing::Outgoing;
use crate::tenancy::Tenants;
use crate::upstream;

/// What requests run under.
pub(super) fn make(
    loaded: &Loaded,
    public: SocketAddr,
    outgoing: &Arc<Outgoing>,
    clock: &SharedClock,
    earlier: Option<&Snapshot>,
) -> anyhow::Result<Snapshot> {
    let config = loaded.config.clone();
    let identity = Identity::new(&config.identity_providers, outgoing, Arc::clone(clock))
        .context("identity_providers")?;
    let identity = match earlier {
        Some(earlier) => identity.with_keys_of(&earlier.identity),
        None => identity,
    };
    let identity = Arc::new(identity);
    let server = &config.server;
    Ok(Snapshot {
        digest: loaded.digest,
        base: Base::new(
            server.public_url.clone(),
            public,
            server.trusted_proxies.clone(),
        ),
        oauth: oauth::Settings::new(&config)?.reading(id_tokens(&identity)),
        identity,
        tenants: Tenants::new(&config),
        credentials: Arc::new(
            Credentials::new(&config.upstreams, Arc::clone(clock)).context("upstreams")?,
        ),
        edge: EdgeLimiter::new(&config.edge)
            .ok_or_else(|| anyhow!("edge.per_address: rate and burst must be above 0"))?,
        config,
    })
}

/// How the authorization server reads ID tokens.
fn id_tokens(identity: &Arc<Identity>) -> oauth::IdTokens {
    let (verifier, describer) = (Arc::clone(identity), Arc::clone(identity));
    oauth::IdTokens {
        verify: Arc::new(move |provider, token| {
            let identity = Arc::clone(&verifier);
            Box::pin(async move { identity.signed_claims(&provider, &token).await.ok() })
        }),
        describe: Arc::new(move |provider, claims| {
            let person = describer.person(provider, claims).ok()?;
            Some((person.tenants, person.roles))
        }),
    }
}

/// Puts the configured upstreams into the catalogue and reads what they offer.
pub(super) async fn fill(
    catalog: &Catalog,
    config: &Config,
    outgoing: &Arc<Outgoing>,
    credentials: &Arc<Credentials>,
    clock: &SharedClock,
) -> anyhow::Result<()> {
    let build = |id: &UpstreamId, settings: &config::Upstream| {
        upstream::build(id.clone(), settings, outgoing, clock)
            .with_context(|| format!("upstreams.{id}"))
    };
    catalog
        .reconfigure(config, Arc::clone(credentials), build)
        .await
}

impl App {
    /// Puts a changed configuration in the place of the running one.
    pub(super) async fn adopt(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let running = self.current.load_full();
        let public = running.base.listen();
        let mut next = make(loaded, public, &self.outgoing, &self.clock, Some(&running))?;
        if next.config.edge == running.config.edge {
            // The same settings keep their buckets.
            next.edge = running.edge.clone();
        }
        if next.config.identity_providers == running.config.identity_providers {
            next.identity = running.identity.clone();
        }
        for key in needs_restart(&running.config, &next.config) {
            tracing::warn!(
                key,
                "This part of the configuration changed; it takes effect at the next start."
            );
        }
        fill(
            &self.catalog,
            &next.config,
            &self.outgoing,
            &next.credentials,
            &self.clock,
        )
        .await?;
        self.streams.reconfigure(next.config.streams);
        self.current.store(Arc::new(next));
        self.epoch.send_modify(|epoch| *epoch += 1);
        Ok(())
    }
}

/// Parts that are read once.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let changed = [
        ("server.listen", old.server.listen != new.server.listen),
        (
            "server.admin_listen",
            old.server.admin_listen != new.server.admin_listen,
        ),
        (
            "server.page_size",
            old.server.page_size != new.server.page_size,
        ),
        (
            "server.session_lifetime",
            old.server.session_lifetime != new.server.session_lifetime,
        ),
        ("database", old.database != new.database),
        ("keys_file", old.keys_file != new.keys_file),
        ("redis", old.redis != new.redis),
        ("outgoing", old.outgoing != new.outgoing),
        ("telemetry", old.telemetry != new.telemetry),
    ];
    changed
        .into_iter()
        .filter(|(_, changed)| *changed)
        .map(|(key, _)| key)
        .collect()
}
