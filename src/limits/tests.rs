//! Buckets, caps and what a refusal leaves behind.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::meter::{Keyer, Meter, Settings};
use super::*;
use crate::config::{Bucket, Config, Streams, Tenant, TenantLimits};
use crate::identity::Principal;
use crate::tenancy::{TenantContext, Tenants, resolve};

fn bucket(rate: &str, burst: u32, concurrent: Option<u32>) -> Bucket {
    Bucket {
        rate: rate.parse().unwrap(),
        burst: Some(burst),
        concurrent,
        when_away: None,
    }
}

fn caller(limits: TenantLimits, tenant: &str, subject: &str, client: &str) -> TenantContext {
    let mut config = Config::default();
    let rules = Tenant {
        limits,
        ..Tenant::default()
    };
    config.tenants.insert(tenant.into(), rules);
    let principal = Arc::new(Principal::sample(tenant, subject, &[], &[]).through(client));
    resolve(principal, None, &Tenants::new(&config)).unwrap()
}

/// What is decided in this process is decided at once.
fn done<T>(decision: impl Future<Output = T>) -> T {
    decision.now_or_never().expect("nothing to wait for")
}

impl Limits {
    fn now(&self, caller: &TenantContext, cost: Cost) -> Result<Admission, Limited> {
        done(self.admit(caller, cost)).map_err(|fault| match fault {
            LimitFault::Over(limited) => limited,
            LimitFault::Away => panic!("nothing can be away"),
        })
    }
}

fn admitted(limits: &Limits, caller: &TenantContext, tries: u32) -> u32 {
    (0..tries)
        .map(|_| u32::from(limits.now(caller, Cost::Call).is_ok()))
        .sum()
}

#[test]
fn a_burst_passes_and_the_next_call_is_told_when_to_come_back() {
    let ticks = Ticks::manual();
    let limits = Limits::new(ticks.clone());
    let rules = TenantLimits {
        per_user: bucket("5/m", 5, None),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    assert_eq!(admitted(&limits, &alice, 5), 5);
    let refusal = limits.now(&alice, Cost::Call).unwrap_err();
    let right = Limited {
        policy: "user",
        quota: 5,
        window: Duration::from_mins(1),
        retry_after: Duration::from_secs(12),
        concurrent: false,
    };
    assert_eq!(refusal, right);
    ticks.advance(Duration::from_millis(11_999));
    assert_eq!(
        limits.now(&alice, Cost::Call).unwrap_err().retry_after,
        Duration::from_millis(1)
    );
    ticks.advance(Duration::from_millis(1));
    assert_eq!(admitted(&limits, &alice, 2), 1);
}

#[test]
fn over_time_exactly_the_rate_passes() {
    let ticks = Ticks::manual();
    let limits = Limits::new(ticks.clone());
    let rules = TenantLimits {
        per_user: bucket("30/s", 10, None),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    let mut passed = 0;
    for _ in 0..10_000 {
        passed += admitted(&limits, &alice, 1);
        ticks.advance(Duration::from_millis(1));
    }
    assert!((309..=311).contains(&passed), "{passed}");
}

#[test]
fn each_kind_of_key_has_its_own_bucket() {
    let limits = Limits::new(Ticks::manual());
    let only_user = TenantLimits {
        per_user: bucket("1/m", 5, None),
        ..TenantLimits::default()
    };
    let of = |subject, client| caller(only_user, "acme", subject, client);
    assert_eq!(admitted(&limits, &of("alice", "codex"), 9), 5);
    assert_eq!(
        admitted(&limits, &of("alice", "fresh-client"), 9),
        0,
        "a newly registered client comes with no fresh bucket"
    );
    assert_eq!(admitted(&limits, &of("bob", "codex"), 9), 5);
    assert_eq!(
        admitted(&limits, &caller(only_user, "globex", "alice", "codex"), 9),
        5,
        "the tenant is part of the key"
    );
}

#[test]
fn client_and_tenant_limits_hold_over_users() {
    let per_client = TenantLimits {
        per_client: Some(bucket("1/m", 3, None)),
        ..TenantLimits::default()
    };
    let per_tenant = TenantLimits {
        per_tenant: Some(bucket("1/m", 3, None)),
        ..TenantLimits::default()
    };
    for (rules, policy, others) in [(per_client, "client", 3), (per_tenant, "tenant", 0)] {
        let limits = Limits::new(Ticks::manual());
        let of = |subject, client| caller(rules, "acme", subject, client);
        assert_eq!(admitted(&limits, &of("alice", "codex"), 2), 2);
        assert_eq!(admitted(&limits, &of("bob", "codex"), 2), 1);
        let refusal = limits.now(&of("carol", "codex"), Cost::Call).unwrap_err();
        assert_eq!(refusal.policy, policy);
        assert_eq!(admitted(&limits, &of("carol", "other"), 3), others);
    }
}

#[test]
fn a_refusal_spends_nothing_elsewhere() {
    let ticks = Ticks::manual();
    let limits = Limits::new(ticks.clone());
    let rules = TenantLimits {
        per_user: bucket("1/m", 5, None),
        per_client: Some(bucket("1/m", 4, None)),
        per_tenant: Some(bucket("1/h", 2, None)),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    assert_eq!(admitted(&limits, &alice, 50), 2);
    // The tenant's bucket refused 48 times: user and client have spent two each.
    let without_tenant = TenantLimits {
        per_tenant: None,
        ..rules
    };
    let alice = caller(without_tenant, "acme", "alice", "codex");
    let admission = limits.now(&alice, Cost::Call).unwrap();
    let left: Vec<_> = admission
        .standings()
        .iter()
        .map(|standing| (standing.policy, standing.remaining))
        .collect();
    assert_eq!(left, [("user", 2), ("client", 1)]);
    assert_eq!(admission.tightest().unwrap().policy, "client");
}

#[test]
fn giving_back_is_exact_among_threads() {
    let limits = Limits::new(Ticks::manual());
    let rules = TenantLimits {
        per_user: bucket("1/h", 1000, None),
        per_tenant: Some(bucket("1/h", 100, None)),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    let passed: u32 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| admitted(&limits, &alice, 2000)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!(passed, 100);
    let alone = TenantLimits {
        per_tenant: None,
        ..rules
    };
    assert_eq!(
        admitted(&limits, &caller(alone, "acme", "alice", "codex"), 2000),
        900
    );
}

#[test]
fn browsing_has_a_budget_of_its_own() {
    let limits = Limits::new(Ticks::manual());
    let rules = TenantLimits {
        per_user: bucket("1/m", 1, None),
        browse: bucket("1/m", 3, None),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    assert_eq!(admitted(&limits, &alice, 4), 1);
    for right in [true, true, true, false] {
        assert_eq!(limits.now(&alice, Cost::Browse).is_ok(), right);
    }
}

#[test]
fn a_tool_class_is_limited_in_each_tenant() {
    let limits = Limits::new(Ticks::manual());
    let class = |rule: &str| ToolClass {
        rule: rule.into(),
        bucket: bucket("5/m", 2, None),
    };
    let acme = caller(TenantLimits::default(), "acme", "alice", "codex");
    let globex = caller(TenantLimits::default(), "globex", "bob", "codex");
    let passes = |caller, rule| done(limits.admit_tool(caller, &class(rule))).is_ok();
    assert!(passes(&acme, "crm_delete_*") && passes(&acme, "crm_delete_*"));
    assert!(!passes(&acme, "crm_delete_*"));
    assert!(passes(&acme, "other_*"));
    assert!(passes(&globex, "crm_delete_*"));
}

#[test]
fn places_are_held_until_dropped_and_a_full_house_spends_no_bucket() {
    let limits = Limits::new(Ticks::manual());
    let rules = TenantLimits {
        per_user: bucket("1/h", 5, Some(2)),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    let first = limits.now(&alice, Cost::Call).unwrap();
    let second = limits.now(&alice, Cost::Call).unwrap();
    for _ in 0..10 {
        let refusal = limits.now(&alice, Cost::Call).unwrap_err();
        assert!(refusal.concurrent);
        assert_eq!((refusal.policy, refusal.quota), ("user", 2));
    }
    drop(first);
    drop(second.merge(limits.now(&alice, Cost::Call).unwrap()));
    assert_eq!(admitted(&limits, &alice, 9), 2, "three of five were spent");
}

#[test]
fn a_rate_refusal_gives_its_place_back() {
    let limits = Limits::new(Ticks::manual());
    let rules = TenantLimits {
        per_user: bucket("1/h", 1, Some(1)),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    drop(limits.now(&alice, Cost::Call).unwrap());
    for _ in 0..3 {
        assert!(!limits.now(&alice, Cost::Call).unwrap_err().concurrent);
    }
}

#[test]
fn a_reload_keeps_unchanged_buckets_and_fills_changed_ones() {
    let limits = Limits::new(Ticks::manual());
    let before = TenantLimits {
        per_user: bucket("1/h", 3, Some(9)),
        ..TenantLimits::default()
    };
    assert_eq!(
        admitted(&limits, &caller(before, "acme", "alice", "codex"), 9),
        3
    );
    let same_rate = TenantLimits {
        per_user: bucket("1/h", 3, Some(4)),
        per_tenant: Some(bucket("100/s", 100, None)),
        ..before
    };
    assert_eq!(
        admitted(&limits, &caller(same_rate, "acme", "alice", "codex"), 9),
        0
    );
    let changed = TenantLimits {
        per_user: bucket("1/h", 4, None),
        ..before
    };
    assert_eq!(
        admitted(&limits, &caller(changed, "acme", "alice", "codex"), 9),
        4
    );
}

#[test]
fn a_million_keys_are_forgotten_when_full_and_never_before() {
    let ticks = Ticks::manual();
    let settings = Settings::of(&bucket("10/s", 10, None));
    let meter = Meter::new(settings, &ticks);
    let keyer = Keyer::default();
    let (victim, spill) = (keyer.key("victim"), keyer.key("spill"));
    for _ in 0..10 {
        meter.take(victim, spill, 1).unwrap();
    }
    let mut most = 0;
    for number in 0..1_000_000_u32 {
        meter.take(keyer.key(number), spill, 1).unwrap();
        if number % 100 == 0 {
            // The victim spends what comes, so that it stays limited all the while.
            ticks.advance(Duration::from_millis(1));
            let _ = meter.take(victim, spill, 1);
        }
        most = most.max(meter.len());
    }
    assert!(most < 140_000, "{most}");
    assert!(meter.take(victim, spill, 1).is_err());
    ticks.advance(Duration::from_secs(5));
    meter.sweep();
    assert_eq!(meter.len(), 0);
}

#[test]
fn too_many_limited_keys_share_a_bucket_and_none_is_reset() {
    let ticks = Ticks::manual();
    let settings = Settings::of(&bucket("1/h", 2, None));
    let meter = Meter::bounded(settings, &ticks, 100, 1000);
    let keyer = Keyer::default();
    let spill = keyer.key("spill");
    let old = keyer.key("old");
    meter.take(old, spill, 1).unwrap();
    meter.take(old, spill, 1).unwrap();
    for number in 0..20_000_u32 {
        let _ = meter.take(keyer.key(number), spill, 1);
    }
    assert!(meter.len() < 2600, "{}", meter.len());
    assert!(meter.take(old, spill, 1).is_err());
    assert!(meter.take(keyer.key("late"), spill, 1).is_err());
}

#[test]
fn unused_meters_and_counters_go_away() {
    let ticks = Ticks::manual();
    let limits = Limits::new(ticks.clone());
    let alice = caller(TenantLimits::default(), "acme", "alice", "codex");
    drop(limits.now(&alice, Cost::Call).unwrap());
    assert_eq!(limits.keys(), 1);
    ticks.advance(Duration::from_mins(1));
    for _ in 0..5 {
        limits.tidy();
    }
    assert_eq!(limits.keys(), 0);
    assert_eq!(format!("{limits:?}").matches("Meter(").count(), 0);
}

#[test]
fn a_bucket_without_burst_holds_a_second_and_at_least_one() {
    for (rate, burst) in [("100/s", 100), ("120/m", 2), ("5/m", 1), ("5/h", 1)] {
        let bucket = Bucket {
            rate: rate.parse().unwrap(),
            burst: None,
            concurrent: None,
            when_away: None,
        };
        assert_eq!(Settings::of(&bucket).burst, burst, "{rate}");
    }
}

#[test]
fn streams_are_capped_by_user_and_in_total() {
    let caps = StreamCaps::new(Streams {
        per_user: 2,
        total: 3,
        ..Streams::default()
    });
    let alice = caller(TenantLimits::default(), "acme", "alice", "codex");
    let bob = caller(TenantLimits::default(), "acme", "bob", "codex");
    let first = caps.open(&alice).unwrap();
    let _second = caps.open(&alice).unwrap();
    assert_eq!(caps.open(&alice).unwrap_err(), StreamsFull::User { cap: 2 });
    let _third = caps.open(&bob).unwrap();
    assert_eq!(caps.open(&bob).unwrap_err(), StreamsFull::Total { cap: 3 });
    drop(first);
    let _fourth = caps.open(&bob).unwrap();
    assert_eq!(caps.open_streams(), 3);
    caps.reconfigure(Streams {
        per_user: 3,
        total: 4,
        ..Streams::default()
    });
    assert!(caps.open(&alice).is_ok());
}

#[test]
fn counters_at_zero_are_gone() {
    let counters = counters::Counters::new();
    let key = Keyer::default().key(1);
    let permits: Vec<_> = (0..3).map(|_| counters.take(key, 3).unwrap()).collect();
    assert!(counters.take(key, 3).is_none());
    assert_eq!(counters.len(), 1);
    drop(permits);
    assert_eq!(counters.len(), 0);
    assert!(counters.take(key, 0).is_none());
    assert_eq!(Arc::strong_count(&counters), 1);
    assert_eq!(counters.len(), 0);
}

#[test]
fn one_address_is_an_ipv4_address_or_an_ipv6_slash_64() {
    for (address, key) in [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2::1", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::6", "2001:db8:1:2::"),
        ("2001:db8:1:3::1", "2001:db8:1:3::"),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(address_key(address), key.parse::<IpAddr>().unwrap());
    }
}

#[test]
fn among_several_replicas_each_serves_its_share_and_no_change_resets_a_bucket() {
    let ticks = Ticks::manual();
    let limits = Limits::new(ticks.clone());
    let rules = TenantLimits {
        per_user: bucket("60/m", 12, Some(5)),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    assert_eq!(limits.divide(3), 1);
    assert_eq!(admitted(&limits, &alice, 9), 4, "a third of the burst");
    ticks.advance(Duration::from_secs(6));
    assert_eq!(admitted(&limits, &alice, 9), 2, "a third of the rate");
    assert_eq!(limits.divide(2), 3);
    assert_eq!(
        admitted(&limits, &alice, 9),
        0,
        "another share is no new bucket"
    );
    ticks.advance(Duration::from_mins(1));
    let held: Vec<_> = (0..9)
        .filter_map(|_| limits.now(&alice, Cost::Call).ok())
        .collect();
    assert_eq!(held.len(), 2, "half of the places, rounded down");
    drop(held);
    assert_eq!(limits.divide(0), 2, "this one lives");
    ticks.advance(Duration::from_mins(1));
    assert_eq!(admitted(&limits, &alice, 20), 12);
}

#[test]
fn a_share_is_never_nothing_and_a_refusal_gives_all_of_it_back() {
    let limits = Limits::new(Ticks::manual());
    let rules = TenantLimits {
        per_user: bucket("1/h", 9, Some(2)),
        per_tenant: Some(bucket("1/h", 2, None)),
        ..TenantLimits::default()
    };
    let alice = caller(rules, "acme", "alice", "codex");
    limits.divide(3);
    assert_eq!(
        admitted(&limits, &alice, 9),
        1,
        "less than one each is one each"
    );
    let alone = TenantLimits {
        per_tenant: None,
        ..rules
    };
    let alice = caller(alone, "acme", "alice", "codex");
    assert_eq!(admitted(&limits, &alice, 9), 2, "of three, one is spent");
}
