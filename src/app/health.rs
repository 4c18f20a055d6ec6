//! Readiness: the database answers and has our schema, required upstreams are
//! there, nobody asked us to stop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::App;
use crate::http::{Health, HealthCheck};
use crate::store::SchemaState;

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
        match tokio::time::timeout(PATIENCE, self.store.schema_state()).await {
            Ok(Ok(SchemaState::Current)) => String::new(),
            Ok(Ok(SchemaState::Behind)) => {
                "the schema is older than this release: run `toolgate migrate`".to_owned()
            }
            Ok(Ok(SchemaState::Newer)) => "the schema is newer than this release".to_owned(),
            Ok(Err(_)) => "no connection".to_owned(),
            Err(_) => "no answer in time".to_owned(),
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
