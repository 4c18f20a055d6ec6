//! The audit against a real Postgres.

mod acted;
mod chained;
mod erased;
mod found;
mod measured;
mod recorded;
mod recovered;
mod refused;
mod tampered;
mod unavailable;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use super::{
    ArgumentsRecord, AuditObserver, AuditSettings, Auditor, CallFacts, Entry, Filter, Finish,
    LaneName, Outcome, search,
};
use crate::clock::{Clock, SystemClock, new_call_id, new_replica_id};
use crate::ids::CallId;
use crate::protocol::Version;
use crate::seal::Keys;
use crate::store::Store;

/// Notes what the lanes do.
#[derive(Debug, Default)]
struct Noted {
    batches: Mutex<Vec<(LaneName, usize)>>,
    failures: Mutex<Vec<(LaneName, usize)>>,
}

impl AuditObserver for Noted {
    fn batch(&self, lane: LaneName, size: usize, _: Duration, _: Duration) {
        self.batches.lock().unwrap().push((lane, size));
    }

    fn failure(&self, lane: LaneName, events: usize) {
        self.failures.lock().unwrap().push((lane, events));
    }

    fn lost(&self, lane: LaneName) {
        panic!("an event of {} is lost", lane.name());
    }
}

impl Noted {
    fn sizes(&self, lane: LaneName) -> Vec<usize> {
        let batches = self.batches.lock().unwrap();
        let of = batches.iter().filter(|(of, _)| *of == lane);
        of.map(|(_, size)| *size).collect()
    }
}

fn auditor(store: &Store) -> (Auditor, Arc<Noted>) {
    auditor_with(store, 4_096)
}

fn auditor_with(store: &Store, queue: usize) -> (Auditor, Arc<Noted>) {
    let noted = Arc::new(Noted::default());
    let auditor = Auditor::spawn(AuditSettings {
        store: store.clone(),
        clock: Arc::new(SystemClock),
        replica: new_replica_id(&SystemClock),
        observer: Arc::<Noted>::clone(&noted),
        queue,
        keys: Some(keys()),
    });
    (auditor, noted)
}

/// The keys of every test.
fn keys() -> Keys {
    Keys::parse("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f").unwrap()
}

const ARGUMENTS: &str = r#"{"customer":"Joe","since":"2026-01-01"}"#;

/// A call of alice's to `crm_find`.
fn facts() -> CallFacts {
    CallFacts {
        call_id: new_call_id(&SystemClock),
        at: SystemClock.now(),
        first_call: None,
        tenant: "acme".into(),
        issuer: "https://login.example.com".into(),
        subject: "alice".into(),
        client: "codex".into(),
        grant: None,
        token_id: Some("7d9f1c0a".to_owned()),
        address: Some([10, 0, 0, 7].into()),
        client_info: Some("codex 0.40".to_owned()),
        version: Some(Version::MODERN),
        upstream: Some("crm".into()),
        tool: "crm_find".to_owned(),
        upstream_tool: Some("find".to_owned()),
        definition_digest: Some([0xd1; 32]),
        config_digest: [0xc0; 32],
        arguments: ArgumentsRecord::redacted(ARGUMENTS, ARGUMENTS.as_bytes()),
        trace_id: None,
        request_bytes: 240,
    }
}

fn ended(outcome: Outcome) -> Finish {
    Finish {
        outcome,
        reason: None,
        upstream_time: Some(Duration::from_micros(1_500)),
        total_time: Duration::from_micros(2_500),
        response_bytes: 512,
        findings: String::new(),
    }
}

fn refused(step: &'static str, reason: &str) -> Finish {
    Finish::refused(step, Some(reason.to_owned()), Duration::from_micros(90))
}

async fn entry(store: &Store, call_id: CallId) -> Option<Entry> {
    let filter = Filter {
        call_id: Some(call_id),
        ..Filter::default()
    };
    let page = search(store, &filter, None, 2).await.unwrap();
    assert!(page.entries.len() < 2, "one entry a call: {page:?}");
    page.entries.into_iter().next()
}
