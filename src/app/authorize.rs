//! What runs beside the authorization server: hearing of revocations, keeping its keys.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use uuid::Uuid;

use super::audit_command::{operator, record};
use super::{App, database};
use crate::audit::{Act, ActKind};
use crate::clock::{SharedClock, SystemClock, new_replica_id};
use crate::config::Loaded;
use crate::ids::{ClientId, Subject, TenantId};
use crate::oauth::{
    AuthorizationServer, Event, Ledger, Parts, Settings, StepFault, Unrecorded, grants,
};
use crate::outgoing::Outgoing;
use crate::store::oauth_grants::Grant;
use crate::store::oauth_signing_keys::StoredKey;

/// Revocations are asked for at least so often: every replica knows within a second.
const POLL: Duration = Duration::from_millis(800);
/// Between looks at the keys.
const KEYS: Duration = Duration::from_secs(4);
/// The same while there are none.
const NO_KEYS: Duration = Duration::from_millis(500);

/// Asks for revocations: often, and at once when this replica revoked something.
pub(super) async fn follow_revocations(app: Arc<App>) {
    loop {
        if is_enabled(&app) {
            hear_revocations(&app).await;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = app.oauth.revocation() => {}
        }
    }
}

/// Asks for revocations now. Open streams of theirs end.
pub(super) async fn hear_revocations(app: &App) {
    match app.own_tokens.hear_revocations().await {
        Ok(true) => app.epoch.send_modify(|epoch| *epoch += 1),
        Ok(false) => {}
        Err(error) => tracing::debug!(%error, "Revocations could not be read; asking again."),
    }
}

/// Makes signing keys when they are due.
pub(super) async fn keep_keys(app: Arc<App>) {
    let mut failed = false;
    loop {
        let mut pause = KEYS;
        if is_enabled(&app) {
            let snapshot = app.current.load_full();
            let renewed = app.oauth.renew_keys(&snapshot.oauth).await;
            if let Err(error) = &renewed {
                pause = NO_KEYS;
                if !failed {
                    tracing::warn!(%error, "The signing keys could not be looked at; trying again.");
                }
            }
            failed = renewed.is_err();
        }
        tokio::time::sleep(pause).await;
    }
}

fn is_enabled(app: &App) -> bool {
    app.current.load().config.authorization_server.enabled
}

/// The authorization server's state for commands.
pub(crate) struct Authorization {
    server: AuthorizationServer,
    settings: Settings,
}

impl Authorization {
    /// Opens the database and the keys of a configuration.
    pub(crate) async fn open(loaded: &Loaded) -> anyhow::Result<Self> {
        let config = &loaded.config;
        if config.keys_file.is_none() {
            bail!("keys_file is missing: without it signing keys live as long as the service");
        }
        let clock: SharedClock = Arc::new(SystemClock);
        let server = AuthorizationServer::new(Parts {
            store: database::reader(loaded).await?,
            outgoing: Arc::new(Outgoing::new(&config.outgoing)?),
            replica: new_replica_id(&*clock),
            clock,
            keys: super::keys(config)?,
        });
        let settings = Settings::new(config).context("clients")?;
        Ok(Self { server, settings })
    }

    /// The grants of a tenant.
    pub(crate) async fn grants(
        &self,
        tenant: &TenantId,
        subject: Option<&Subject>,
        client: Option<&ClientId>,
    ) -> anyhow::Result<Vec<Grant>> {
        let subject = subject.map(Subject::as_str);
        let client = client.map(ClientId::as_str);
        Ok(self
            .server
            .store()
            .list_grants(tenant, subject, client)
            .await?)
    }

    /// Ends a grant, once it is on record who ends it.
    pub(crate) async fn revoke(
        &self,
        loaded: &Loaded,
        tenant: &TenantId,
        grant: Uuid,
    ) -> anyhow::Result<()> {
        let (server, settings) = (&self.server, &self.settings);
        let (grant, ledger) = ((tenant, grant), ByOperator(loaded));
        let ended = grants::revoke::<StepFault>(server, settings, grant, "operator", &ledger).await;
        Ok(ended?)
    }

    /// Every signing key.
    pub(crate) async fn keys(&self) -> anyhow::Result<Vec<StoredKey>> {
        Ok(self.server.list_keys().await?)
    }

    /// Makes the next signing key, once it is on record who does, and gives its id.
    pub(crate) async fn rotate(
        &self,
        loaded: &Loaded,
        compromised: bool,
    ) -> anyhow::Result<String> {
        let act = Act::new(ActKind::ADMINISTRATION, "keys.rotate")
            .actor(operator())
            .detail("compromised", compromised);
        record(loaded, &act).await?;
        Ok(self.server.rotate_keys(&self.settings, compromised).await?)
    }
}

/// The record of what an operator does by a command.
struct ByOperator<'a>(&'a Loaded);

impl Ledger for ByOperator<'_> {
    fn record(
        &self,
        event: Event,
    ) -> Pin<Box<dyn Future<Output = Result<(), Unrecorded>> + Send + '_>> {
        Box::pin(async move {
            let Some(act) = act(&event) else {
                return Ok(());
            };
            record(self.0, &act).await.map(drop).map_err(|error| {
                tracing::error!(%error, "The audit cannot be written; nothing was changed.");
                Unrecorded
            })
        })
    }

    fn note(&self, event: Event, failed: Option<&'static str>) {
        // A command has no time to put it on record: whoever gave it reads this.
        tracing::warn!(?event, failed, "What is on record did not take effect.");
    }
}

/// Commands end grants and nothing else.
fn act(event: &Event) -> Option<Act> {
    let Event::Revoked {
        tenant,
        revoked,
        reason,
        ..
    } = event
    else {
        return None;
    };
    let act = Act::new(ActKind::REVOCATION, reason).tenant(tenant);
    Some(act.actor(operator()).detail("revoked", revoked.to_string()))
}
