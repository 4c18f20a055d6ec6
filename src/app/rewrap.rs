//! `keys rewrap`: what is stored sealed is sealed anew under the first key, so that older
//! lines of the keys file can go.

use anyhow::Context;

use super::audit_command::{operator, record};
use super::database::patient_reader;
use crate::audit::{Act, ActKind};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, Loaded};
use crate::seal::{Keys, RetiredKey, SealFault};
use crate::store::Store;
use crate::store::sealed::{SealedColumn, SealedRow};

/// What became of one column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewrapped {
    pub(crate) column: &'static str,
    /// Rows that are sealed anew.
    pub(crate) resealed: u64,
    /// Rows that no key of the file opens.
    pub(crate) unreadable: u64,
}

/// What became of all, and what older keys are still needed for.
#[derive(Debug)]
pub(crate) struct Rewrap {
    pub(crate) columns: Vec<Rewrapped>,
    /// Keys that are kept, sealed, for what is not sealed anew.
    pub(crate) retired: usize,
    /// Sign-ins of apps that have not been renewed since: they end with the old key.
    pub(crate) families: u64,
}

/// Seals everything anew, `batch` rows at a time. May be stopped, repeated, and run
/// beside replicas.
///
/// # Errors
/// When the database is away or the keys file cannot be read.
pub(crate) async fn rewrap(loaded: &Loaded, batch: u32) -> anyhow::Result<Rewrap> {
    let store = patient_reader(loaded).await?;
    let text = super::keys_text(&loaded.config)?;
    let keys = Keys::parse(text.expose()).context("keys_file")?;
    let now = SystemClock.now();
    // First of all: what is lost between here and the end is found the next time.
    for key in RetiredKey::of_lines(text.expose())? {
        store.insert_retired_key(&key, now).await?;
    }
    let mut columns = Vec::new();
    for column in SealedColumn::ALL {
        columns.push(rewrap_column(&store, &keys, column, batch).await?);
    }
    let done = Rewrap {
        columns,
        retired: store.list_retired_keys().await?.len(),
        families: store
            .count_families_of_retired_keys(now)
            .await?
            .try_into()
            .unwrap_or_default(),
    };
    let sum = |of: fn(&Rewrapped) -> u64| done.columns.iter().map(of).sum::<u64>();
    let act = Act::new(ActKind::ADMINISTRATION, "keys.rewrap")
        .actor(operator())
        .detail("resealed", sum(|column| column.resealed))
        .detail("unreadable", sum(|column| column.unreadable));
    record(loaded, &act).await?;
    Ok(done)
}

async fn rewrap_column(
    store: &Store,
    keys: &Keys,
    column: SealedColumn,
    batch: u32,
) -> anyhow::Result<Rewrapped> {
    let mut done = Rewrapped {
        column: column.name(),
        resealed: 0,
        unreadable: 0,
    };
    let (marks, mut after) = (keys.marks(), String::new());
    loop {
        let rows = store
            .list_sealed(column, &marks, &after, i64::from(batch.max(1)))
            .await?;
        let Some(last) = rows.last() else {
            return Ok(done);
        };
        after.clone_from(&last.key);
        for row in &rows {
            match resealed(keys, column, row) {
                // Whoever changed it meanwhile has sealed it with a key of theirs.
                Ok(sealed) => {
                    done.resealed += u64::from(store.update_sealed(column, row, &sealed).await?);
                }
                Err(_) => done.unreadable += 1,
            }
        }
    }
}

fn resealed(keys: &Keys, column: SealedColumn, row: &SealedRow) -> Result<String, SealFault> {
    let sealer = keys.sealer(column.label());
    let plain = zeroize::Zeroizing::new(sealer.open(&row.sealed, &row.bound_to)?);
    Ok(sealer.seal(&plain, &row.bound_to))
}

/// The keys of the file, and behind them those that have left it: for opening what the
/// audit keeps sealed, and for nothing else.
///
/// # Errors
/// When the keys file cannot be read, or the database is away.
pub(crate) async fn reading_keys(config: &Config, store: &Store) -> anyhow::Result<Keys> {
    Ok(super::keys(config)?.with_retired(&store.list_retired_keys().await?))
}
