//! Verification: everything that is stored is computed anew and held against what was
//! signed. Streams a day at a time; memory grows with chains, names, a day's callers
//! and a day's checkpoints, not with events.
//!
//! What each part trusts: [`examiner`] trusts nothing and computes leaves and links;
//! [`signatures`] trusts the public keys that it was given; [`settle`] puts both
//! together when all has been seen; [`diagnose`] says what was done to an event that
//! does not fit, by trying what would make it fit.

mod diagnose;
mod erasures;
mod examiner;
mod findings;
mod links;
mod settle;
mod signatures;

use time::{Date, OffsetDateTime};

use super::checkpoint::{Checkpoint, Verifier};
use crate::store::audit_scan::AuditScan;
use crate::store::{Store, StoreError};

use examiner::Examiner;
use signatures::{Signatures, unhex};

pub use findings::{Finding, FindingKind, Report};

/// What is verified, and with what.
#[derive(Debug)]
pub struct VerifyOptions<'a> {
    /// The first day, UTC; none for the first that there is.
    pub since: Option<Date>,
    /// The last day, UTC; none for all there are.
    pub until: Option<Date>,
    /// Only this tenant's chains.
    pub tenant: Option<String>,
    /// Who may have signed.
    pub verifier: &'a Verifier,
    /// Checkpoints from the log, whatever else is among them.
    pub logged: Vec<String>,
    /// The present.
    pub now: OffsetDateTime,
}

impl<'a> VerifyOptions<'a> {
    /// All days and tenants, without a log.
    pub fn new(verifier: &'a Verifier, now: OffsetDateTime) -> Self {
        Self {
            since: None,
            until: None,
            tenant: None,
            verifier,
            logged: Vec::new(),
            now,
        }
    }
}

/// Why verification came to no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifyFault {
    /// No event was ever recorded for such a tenant.
    #[error("the audit knows no tenant `{0}`")]
    NoTenant(String),
    /// None of the log's checkpoints was signed by a key of this deployment.
    #[error("no checkpoint of this deployment is in the log that was given")]
    NoLoggedCheckpoint,
    /// The database's fault.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Told how far verification is.
pub trait Progress {
    /// `events` of about `all` have been looked at; the present day is `day`.
    fn at(&mut self, day: Date, events: u64, all: u64);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct Quiet;

impl Progress for Quiet {
    fn at(&mut self, _: Date, _: u64, _: u64) {}
}

/// Between two words about progress.
const STEP: u64 = 20_000;
/// Checkpoints that are read at a time.
const PAGE: u32 = 1_000;
/// A replica that has given no sign of life for so long is gone.
pub(super) const ALIVE_SECONDS: u32 = 30;

/// Verifies what `options` asks for.
///
/// # Errors
/// When there is no result; findings are in the report.
pub async fn verify(
    store: &Store,
    options: &VerifyOptions<'_>,
    progress: &mut impl Progress,
) -> Result<Report, VerifyFault> {
    match attempt(store, options, progress, false).await? {
        Some(report) => Ok(report),
        // Rows that were moved about in bulk: sorting them bounds the memory again.
        None => Ok(attempt(store, options, progress, true)
            .await?
            .unwrap_or_default()),
    }
}

/// One pass. None when the rows lie in no order and were not `ordered`.
async fn attempt(
    store: &Store,
    options: &VerifyOptions<'_>,
    progress: &mut impl Progress,
    ordered: bool,
) -> Result<Option<Report>, VerifyFault> {
    let mut scan = store.scan().await?;
    let writers = store.list_writers(ALIVE_SECONDS).await?;
    let mut examiner = Examiner::new(
        scan.names().await?,
        Signatures::new(writers, options.since.is_some()),
    );
    let tenant = tenant(&examiner, options)?;
    let log = options.logged.iter().map(String::as_str);
    if examiner.signatures.read_log(options.verifier, log) == 0 && !options.logged.is_empty() {
        return Err(VerifyFault::NoLoggedCheckpoint);
    }
    let closings = store.list_closings().await?;
    let Examiner {
        signatures, report, ..
    } = &mut examiner;
    signatures.read_closings(options.verifier, &closings, report);

    let days = days(&mut scan, &examiner, options).await?;
    let all = u64::try_from(scan.estimate().await?).unwrap_or_default();
    let mut ahead = days.iter().copied();
    if let Some(first) = ahead.next() {
        checkpoints(store, options, &mut examiner, first, false).await?;
    }
    for day in &days {
        // An event's head may be signed a day later, never earlier.
        match ahead.next() {
            Some(next) => checkpoints(store, options, &mut examiner, next, false).await?,
            None => beyond(store, options, &mut examiner, *day).await?,
        }
        examiner.begin_day();
        scan.callers(*day, |caller| examiner.caller(&caller))
            .await?;
        let mut in_order = true;
        scan.events(*day, tenant, ordered, |event| {
            in_order = examiner.event(event) || ordered;
            let seen = examiner.report.events;
            if seen.is_multiple_of(STEP) {
                progress.at(*day, seen, all);
            }
            in_order
        })
        .await?;
        if !in_order {
            return Ok(None);
        }
        examiner.end_day();
    }
    settle::settle(&mut scan, options, &mut examiner).await?;
    Ok(Some(examiner.report))
}

fn tenant(examiner: &Examiner, options: &VerifyOptions<'_>) -> Result<Option<i32>, VerifyFault> {
    let Some(wanted) = &options.tenant else {
        return Ok(None);
    };
    examiner
        .id_of(wanted)
        .map(Some)
        .ok_or_else(|| VerifyFault::NoTenant(wanted.clone()))
}

/// The days to look at, in order.
async fn days(
    scan: &mut AuditScan,
    examiner: &Examiner,
    options: &VerifyOptions<'_>,
) -> Result<Vec<Date>, StoreError> {
    let mut days = scan.days().await?;
    days.extend(examiner.signatures.logged_days());
    days.retain(|day| {
        options.since.is_none_or(|since| *day >= since)
            && options.until.is_none_or(|until| *day <= until)
    });
    days.sort_unstable();
    days.dedup();
    Ok(days)
}

/// Reads and checks a day's checkpoints, from the table and from the log.
async fn checkpoints(
    store: &Store,
    options: &VerifyOptions<'_>,
    examiner: &mut Examiner,
    day: Date,
    beyond: bool,
) -> Result<(), StoreError> {
    let mut after = (i32::MIN, i64::MIN);
    loop {
        let rows = store.list_checkpoints(day, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = (last.writer, last.number);
        for row in &rows {
            let Examiner {
                signatures, report, ..
            } = &mut *examiner;
            if let Some(checkpoint) = signatures.row(options.verifier, row, report) {
                examiner.signed(&checkpoint, options.tenant.as_deref(), beyond);
            }
        }
    }
    let Examiner {
        signatures, report, ..
    } = &mut *examiner;
    for checkpoint in signatures.only_logged(day, report) {
        examiner.signed(&checkpoint, options.tenant.as_deref(), beyond);
    }
    Ok(())
}

/// What was signed the day after the last one of the range: it covers that day's tail.
async fn beyond(
    store: &Store,
    options: &VerifyOptions<'_>,
    examiner: &mut Examiner,
    day: Date,
) -> Result<(), StoreError> {
    match (options.until, day.next_day()) {
        (Some(_), Some(next)) => checkpoints(store, options, examiner, next, true).await,
        _ => Ok(()),
    }
}

impl Examiner {
    fn id_of(&self, name: &str) -> Option<i32> {
        self.names
            .iter()
            .find(|(_, known)| &***known == name)
            .map(|(id, _)| *id)
    }

    /// Takes what a checkpoint says of the chains.
    fn signed(&mut self, checkpoint: &Checkpoint, only: Option<&str>, beyond: bool) {
        for (tenant, count, link) in &checkpoint.chains {
            if only.is_some_and(|only| only != tenant) {
                continue;
            }
            let id = self
                .tenants
                .get(tenant.as_str())
                .copied()
                .or_else(|| self.id_of(tenant));
            let (Some(id), Some(link)) = (id, unhex(link)) else {
                self.unknown_tenant(checkpoint, tenant);
                continue;
            };
            self.tenants.insert(tenant.clone(), id);
            let chain = self.chains.entry((checkpoint.writer, id)).or_default();
            chain.links.head(*count, link, beyond);
        }
    }

    fn unknown_tenant(&mut self, checkpoint: &Checkpoint, tenant: &str) {
        if self.unknown_tenants.insert(tenant.to_owned()) {
            let why = "a writer signed a chain of this tenant, and the dictionary has no such name";
            let finding = Finding::new(FindingKind::AlteredName, why);
            self.report.add(finding.chain(checkpoint.writer, tenant));
        }
    }

    /// The day is over: what can be joined is.
    fn end_day(&mut self) {
        let mut broken = Vec::new();
        for (key, chain) in &mut self.chains {
            broken.extend(chain.links.join().into_iter().map(|place| (*key, place)));
        }
        for ((writer, tenant), place) in broken {
            let finding = Finding::new(
                FindingKind::BrokenChain,
                "it does not follow from the event before it",
            );
            let finding = finding.chain(writer, self.name(tenant)).at(place, place);
            self.report.add(finding);
        }
    }
}
