//! What is signed about a day before its partitions are dropped, so that what is left
//! of the chains can be verified without it: for each chain the runs of places that
//! the day had and the link at the end of each, for each writer its checkpoints.

use serde::{Deserialize, Serialize};
use time::{Date, OffsetDateTime};

use super::checkpoint::{
    CHAINS_MAX, CLOSING_TYPE, Signer, Verifier, public_keys, to_micros, token_digest,
};
use super::event::hexadecimal;
use super::verify::{FindingKind, Quiet, Report, VerifyFault, VerifyOptions, verify};
use crate::seal::Keys;
use crate::store::audit_checkpoints::ClosingRow;
use crate::store::{Store, StoreError};

/// What a closing says; a day may take several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// From 1, over all days.
    pub number: i64,
    /// Digest of the closing before.
    pub previous: String,
    /// The day, as 2026-07-28.
    pub day: String,
    /// When it was signed, microseconds since 1970.
    pub at: i64,
    /// Which of the day's closings, from 1.
    pub part: usize,
    /// Writer, tenant, first place, last place, link at the last.
    pub events: Vec<(i32, String, i64, i64, String)>,
    /// Writer, first number, last number, digest of the last, whether that was its final one.
    pub checkpoints: Vec<(i32, i64, i64, String, bool)>,
}

/// Why a day cannot be closed.
#[derive(Debug, thiserror::Error)]
pub enum ClosingFault {
    /// It does not verify: dropping it would remove the evidence.
    #[error(
        "the day does not verify; look at it with `toolgate audit verify` before it is dropped"
    )]
    Tampered(Box<Report>),
    /// It could not be verified.
    #[error(transparent)]
    Verify(#[from] VerifyFault),
    /// The cryptographic library failed.
    #[error("the closing could not be signed")]
    Signing,
    /// The database's fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Verifies a day, signs where its chains stood, stores that and removes the day's
/// checkpoints. When it returns, the day's partitions may be dropped; until then
/// nothing is lost by doing it again. `store` has to be connected as the owner, with
/// patience: the whole day is read.
///
/// # Errors
/// [`ClosingFault::Tampered`] when the day does not verify, unless `force`.
pub async fn close_partition(
    store: &Store,
    keys: &Keys,
    day: Date,
    now: OffsetDateTime,
    force: bool,
) -> Result<usize, ClosingFault> {
    let jwks = public_keys(keys).map_err(|_| ClosingFault::Signing)?;
    let verifier = Verifier::parse(&jwks.to_string()).map_err(|_| ClosingFault::Signing)?;
    let options = VerifyOptions {
        since: Some(day),
        until: Some(day),
        ..VerifyOptions::new(&verifier, now)
    };
    let report = verify(store, &options, &mut Quiet).await?;
    // A key that was rotated away is no reason to keep the day for ever.
    let tampered = |kind: &FindingKind| !kind.is_notice() && *kind != FindingKind::UnknownKey;
    if report.counts.keys().any(tampered) && !force {
        return Err(ClosingFault::Tampered(Box::new(report)));
    }
    let signer = Signer::new(keys).map_err(|_| ClosingFault::Signing)?;
    let events = events(store, day).await?;
    let checkpoints = checkpoints(store, &verifier, day).await?;
    let before = store.list_closings().await?;
    let (mut number, mut previous) = before
        .last()
        .map_or((0, [0; 32]), |row| (row.number, token_digest(&row.token)));
    let parts = events
        .len()
        .max(checkpoints.len())
        .div_ceil(CHAINS_MAX)
        .max(1);
    let mut rows = Vec::with_capacity(parts);
    for part in 1..=parts {
        number += 1;
        let closing = Closing {
            number,
            previous: hexadecimal(&previous),
            day: day.to_string(),
            at: to_micros(now),
            part,
            events: nth(&events, part),
            checkpoints: nth(&checkpoints, part),
        };
        let token = signer
            .sign(&closing, CLOSING_TYPE)
            .map_err(|_| ClosingFault::Signing)?;
        previous = token_digest(&token);
        rows.push(ClosingRow { number, day, token });
    }
    store.scan().await?.insert_closings(day, &rows).await?;
    for row in &rows {
        tracing::info!(closing = %row.token, %day, "A day of the audit is closed.");
    }
    Ok(rows.len())
}

fn nth<T: Clone>(all: &[T], part: usize) -> Vec<T> {
    all.chunks(CHAINS_MAX)
        .nth(part - 1)
        .map(<[T]>::to_vec)
        .unwrap_or_default()
}

async fn events(
    store: &Store,
    day: Date,
) -> Result<Vec<(i32, String, i64, i64, String)>, StoreError> {
    let runs = store.scan().await?.runs(day).await?;
    Ok(runs
        .into_iter()
        .map(|run| {
            (
                run.writer,
                run.tenant,
                run.first,
                run.last,
                hexadecimal(&run.link),
            )
        })
        .collect())
}

async fn checkpoints(
    store: &Store,
    verifier: &Verifier,
    day: Date,
) -> Result<Vec<(i32, i64, i64, String, bool)>, StoreError> {
    let mut runs: Vec<(i32, i64, i64, String, bool)> = Vec::new();
    let mut after = (i32::MIN, i64::MIN);
    loop {
        let rows = store.list_checkpoints(day, after, 1_000).await?;
        let Some(last) = rows.last() else {
            return Ok(runs);
        };
        after = (last.writer, last.number);
        for row in &rows {
            let digest = hexadecimal(&token_digest(&row.token));
            let ended = verifier
                .checkpoint(&row.token)
                .is_ok_and(|checkpoint| checkpoint.last);
            match runs.last_mut() {
                Some((writer, _, last, known, was))
                    if *writer == row.writer && *last + 1 == row.number =>
                {
                    (*last, *known, *was) = (row.number, digest, ended);
                }
                _ => runs.push((row.writer, row.number, row.number, digest, ended)),
            }
        }
    }
}
