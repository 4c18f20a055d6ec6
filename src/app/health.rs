//! Readiness: the database takes writes and has our schema, required upstreams
//! are there, nobody asked us to stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::App;
use crate::http::{Health, HealthCheck};
use crate::store::{SchemaState, StoreError};

/// How long the database may take to answer a probe.
const PATIENCE: Duration = Duration::from_secs(1);

/// Asks how things are, each time it is called.
pub(super) fn check(app: &Arc<App>) -> HealthCheck {
    let app = Arc::clone(app);
    Arc::new(move || {
        let app = Arc::clone(&app);
        Box::pin(async move { app.health().await })
    })
}

impl App {
    async fn health(&self) -> Health {
        let checks = BTreeMap::from([
            (
                "lifecycle",
                if self.lifecycle.is_ready() {
                    String::new()
                } else {
                    "starting or stopping".to_owned()
                },
            ),
            ("database", self.database().await),
            ("upstreams", self.required_upstreams()),
        ]);
        Health {
            ready: checks.values().all(String::is_empty),
            checks,
        }
    }

    async fn database(&self) -> String {
        let asked = async {
            let schema = self.store.schema_state().await?;
            Ok::<_, StoreError>((schema, self.store.is_writable().await?))
        };
        match tokio::time::timeout(PATIENCE, asked).await {
            Ok(Ok((_, false))) => "it is read-only".to_owned(),
            Ok(Ok((schema, true))) => self.schema(schema).to_owned(),
            Ok(Err(_)) => "no connection".to_owned(),
            Err(_) => "no answer in time".to_owned(),
        }
    }

    /// Comes back only when the database, away or behind at the start, turns out
    /// to have a newer release's schema.
    pub(super) async fn newer_schema(&self) {
        while !self.schema_met.load(Ordering::Relaxed) {
            tokio::time::sleep(PATIENCE).await;
            match self.store.schema_state().await {
                Ok(SchemaState::Newer) => return,
                Ok(SchemaState::Current) => self.schema_met.store(true, Ordering::Relaxed),
                Ok(SchemaState::Behind) | Err(_) => {}
            }
        }
        std::future::pending::<()>().await;
    }

    /// What is the matter with the schema. One that became newer while this
    /// replica served is one that it can live with: migrations expand first and
    /// contract a release later, so that replicas are exchanged one by one.
    fn schema(&self, schema: SchemaState) -> &'static str {
        match schema {
            SchemaState::Current => {
                self.schema_met.store(true, Ordering::Relaxed);
                ""
            }
            SchemaState::Newer if self.schema_met.load(Ordering::Relaxed) => "",
            SchemaState::Newer => "the schema is newer than this release",
            SchemaState::Behind => "the schema is older than this release: run `toolgate migrate`",
        }
    }

    fn required_upstreams(&self) -> String {
        let away: Vec<String> = self
            .catalog
            .missing()
            .iter()
            .map(ToString::to_string)
            .collect();
        if away.is_empty() {
            String::new()
        } else {
            format!("away: {}", away.join(", "))
        }
    }
}
