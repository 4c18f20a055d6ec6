//! What commands put on record: who ran them, through an auditor of their own that ends
//! with the command.

use std::sync::Arc;

use anyhow::Context;

use crate::audit::{Act, ActKind, Actor, AuditSettings, Auditor, Maintained, Unobserved};
use crate::clock::{SystemClock, new_replica_id};
use crate::config::Loaded;
use crate::ids::Subject;

/// The account that runs a command.
pub(crate) fn operator() -> Actor {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid());
    let name = user.ok().flatten().map(|user| user.name);
    Actor {
        subject: name.map(|name| Subject::new(name.as_str())),
        ..Actor::default()
    }
}

/// An auditor for one command. Close it.
///
/// # Errors
/// When keys or database are not to be had.
pub(crate) async fn auditor(loaded: &Loaded) -> anyhow::Result<Auditor> {
    Ok(Auditor::spawn(AuditSettings {
        store: super::reader(loaded).await?,
        clock: Arc::new(SystemClock),
        replica: new_replica_id(&SystemClock),
        observer: Arc::new(Unobserved),
        queue: 16,
        keys: Some(super::keys(&loaded.config)?),
    }))
}

/// Puts one act on record.
///
/// # Errors
/// When it is not durable; then what it tells of must not be done.
pub(crate) async fn record(loaded: &Loaded, act: &Act) -> anyhow::Result<()> {
    let auditor = auditor(loaded).await?;
    let outcome = auditor.record(act).await;
    auditor.close().await;
    outcome
        .map(drop)
        .context("it cannot be put on record, so it is not done")
}

/// Puts on record which days were dropped.
pub(crate) fn note_upkeep(auditor: &Auditor, done: &Maintained) {
    if let Some(act) = upkeep(done) {
        auditor.note(&act);
    }
}

/// The act of an upkeep that dropped something.
pub(crate) fn upkeep(done: &Maintained) -> Option<Act> {
    let days: Vec<String> = done.dropped.iter().map(ToString::to_string).collect();
    (!days.is_empty()).then(|| {
        Act::new(ActKind::ADMINISTRATION, "audit.drop")
            .actor(operator())
            .detail("days", days)
    })
}
