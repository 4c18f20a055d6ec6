//! Limits that replicas count together in Redis (C25), and the script that counts.

use std::time::{Duration, Instant};

use super::support::redis::Redis;
use super::support::{Era, Gateway, Helper, Setup, both, eventually, json};

const SCRIPT: &str = include_str!("../../src/limits/shared/admit.lua");

/// The script as a replica would run it: one bucket and one cap.
fn admit(redis: &Redis, key: &str, micros: &str, burst: u32, cap: u32, lease: &str) -> Vec<i64> {
    let (burst, cap) = (burst.to_string(), cap.to_string());
    let (bucket, places) = (format!("{{t}}:{key}"), format!("{{t}}:{key}:places"));
    let words = [
        "EVAL", SCRIPT, "2", &bucket, &places, lease, "300000", micros, &burst, &cap,
    ];
    let answer = redis.ask(&words);
    let numbers = answer
        .lines()
        .map(|line| line.rsplit(' ').next().unwrap().parse());
    numbers
        .collect::<Result<_, _>>()
        .unwrap_or_else(|_| panic!("{answer}"))
}

#[tokio::test]
async fn the_script_counts_by_the_servers_clock_and_forgets_by_itself() {
    let redis = Redis::start(&[]);
    let take = || admit(&redis, "b", "1000000", 3, 0, "l");
    assert_eq!([take(), take(), take()], [[0, 2], [0, 1], [0, 0]]);
    let refused = take();
    assert_eq!(refused[0], 1, "the first charge refuses");
    assert!((1..=1_000_000).contains(&refused[1]), "{refused:?}");
    tokio::time::sleep(Duration::from_micros(refused[1].unsigned_abs()) + Duration::from_millis(2))
        .await;
    assert_eq!(take()[0], 0, "one has come");
    // A clock that went back, such as that of the standby that took over: an empty
    // bucket, which fills as always, and not one that is shut for an hour.
    redis.ask(&["SET", "{t}:b", "99999999999999999"]);
    assert_eq!(take()[0], 1);
    tokio::time::sleep(Duration::from_millis(1050)).await;
    assert_eq!(take()[0], 0);
    tokio::time::sleep(Duration::from_millis(3050)).await;
    assert_eq!(redis.ask(&["DBSIZE"]), "0", "a full bucket is no key");
}

#[tokio::test]
async fn a_place_is_a_lease_that_ends_with_its_holder() {
    let redis = Redis::start(&[]);
    let take = |lease: &str| admit(&redis, "c", "1", 1000, 2, lease);
    assert_eq!((take("one")[0], take("two")[0]), (0, 0));
    assert_eq!(take("three"), [1, -1]);
    tokio::time::sleep(Duration::from_millis(350)).await;
    assert_eq!(take("three")[0], 0, "nobody renewed the others");
}

/// Several charges: what refuses leaves the others as they were.
#[tokio::test]
async fn an_admission_is_all_or_nothing() {
    let redis = Redis::start(&[]);
    let both = |cap: &str| {
        let words = [
            "EVAL", SCRIPT, "4", "{t}:1", "{t}:1p", "{t}:2", "{t}:2p", "l", "1000000", "1000000",
            "5", cap, "1000000", "2", "0",
        ];
        redis.ask(&words).replace("(integer) ", "")
    };
    assert_eq!(both("9").lines().collect::<Vec<_>>(), ["0", "4", "1"]);
    assert_eq!(both("9").lines().collect::<Vec<_>>(), ["0", "3", "0"]);
    for _ in 0..4 {
        assert_eq!(both("9").lines().next(), Some("2"));
    }
    assert_eq!(both("1").lines().collect::<Vec<_>>(), ["1", "-1"]);
    assert_eq!(
        admit(&redis, "1", "1000000", 5, 0, "l"),
        [0, 2],
        "three of five are left, and one less"
    );
}

async fn deployment(redis: &Redis, more: &str) -> (Gateway, Helper) {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let gateway = Setup::new()
        .yaml(&json!({"redis": {"url": redis.url(), "timeout": "2s"}}).to_string())
        .yaml(more)
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    (gateway, hostile)
}

async fn counted_together(gateways: &[&Gateway]) {
    for gateway in gateways {
        eventually("it counts in Redis", async || {
            let metrics = gateway.metrics().await;
            metrics.contains("toolgate_limits_store_up 1").then_some(())
        })
        .await;
    }
}

/// How many of so many calls pass, in turn over the replicas and eras.
async fn passed(gateways: &[&Gateway], who: &str, calls: usize) -> usize {
    let mut passed = 0;
    for number in 0..calls {
        let gateway = gateways[number % gateways.len()];
        let caller = gateways[0].user(who).through(gateway);
        let answer = caller.modern().call("echo", json!({})).await;
        match answer.status.as_u16() {
            200 => passed += 1,
            _ => assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (429, 1429),
                "{answer:?}"
            ),
        }
    }
    passed
}

const TEN: &str = "tenants: { acme: { limits: { per_client: { rate: 10/h, burst: 10 } } } }";

/// C25 a, b.
#[tokio::test]
async fn two_replicas_serve_one_limit_and_a_restart_forgives_nothing() {
    let redis = Redis::start(&[]);
    let (mut first, _hostile) = deployment(&redis, TEN).await;
    let second = first.replica().await;
    counted_together(&[&first, &second]).await;
    assert_eq!(passed(&[&first, &second], "alice@acme", 20).await, 10);
    first.restart().await;
    counted_together(&[&first]).await;
    assert_eq!(passed(&[&first, &second], "alice@acme", 5).await, 0);
    let keys = redis.ask(&["KEYS", "*"]);
    for key in keys.lines().filter(|key| !key.contains("probe")) {
        assert!(key.starts_with("{acme}:"), "{key}");
        assert!(!key.contains("alice"), "{key}");
        let lives: i64 = redis.ask(&["PTTL", key]).parse().unwrap();
        assert!(lives > 0, "{key} stays for ever");
    }
}

/// C25 c: away, each limit does what it says; within the time that an answer may take;
/// one line in the log.
#[tokio::test]
async fn while_redis_is_away_each_limit_does_what_it_says_and_nobody_waits() {
    let redis = Redis::start(&[]);
    let more = "
        redis: { timeout: 300ms }
        tenants:
          acme: { limits: { per_client: { rate: 10/h, burst: 10 } } }
          globex: { limits: { per_user: { rate: 10/h, burst: 10, when_away: refuse }, browse: { rate: 9/s } } }
    ";
    let (gateway, hostile) = deployment(&redis, more).await;
    counted_together(&[&gateway]).await;
    assert_eq!(passed(&[&gateway], "alice@acme", 12).await, 10);
    for frozen in [true, false] {
        let ran = hostile.calls().await.len();
        if frozen {
            redis.freeze();
        } else {
            redis.stop();
        }
        let begun = Instant::now();
        let mut alice = gateway.user("alice@acme").modern();
        let first = alice.call("echo", json!({})).await;
        assert_eq!(first.status, 200, "counted here: {first:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "{:?}",
            begun.elapsed()
        );
        for era in both() {
            let mut bob = gateway.user("bob@globex").connect(era).await;
            let begun = Instant::now();
            let answer = bob.call("echo", json!({})).await;
            assert_eq!(
                (answer.status.as_u16(), answer.code()),
                (503, 1503),
                "{answer:?}"
            );
            assert!(answer.header("retry-after").is_some());
            assert!(
                begun.elapsed() < Duration::from_secs(1),
                "nobody asks any more"
            );
            assert!(!bob.names().await.is_empty(), "browsing is counted here");
        }
        assert_eq!(gateway.admin_status("/readyz").await, Some(200));
        assert_eq!(
            hostile.calls().await.len(),
            ran + 1,
            "what is refused does not run"
        );
        if frozen {
            redis.thaw();
        } else {
            redis.resume();
        }
        counted_together(&[&gateway]).await;
        let mut bob = gateway.user("bob@globex").modern();
        assert_eq!(bob.call("echo", json!({})).await.status, 200, "it is back");
    }
    let told = gateway.logs().lines();
    let lines = told.iter().filter(|line| line.contains("Redis is away"));
    assert_eq!(lines.count(), 1, "one line an interval");
    let refused = gateway.audit(&["--tenant", "globex", "--outcome", "refused:limit"]);
    assert_eq!(refused.len(), 4, "{refused:?}");
    assert!(refused[0]["reason"].as_str().unwrap().contains("away"));
    let metrics = gateway.metrics().await;
    assert!(metrics.contains("toolgate_limits_store_away_total{result=\"refused\"}"));
}

#[tokio::test]
async fn places_are_counted_together_and_come_back_when_a_replica_dies() {
    let redis = Redis::start(&[]);
    let more = "
        tenants: { acme: { limits: { per_user: { rate: 1000/s, burst: 1000, concurrent: 2 } } } }
    ";
    let (mut first, hostile) = deployment(&redis, more).await;
    let second = first.replica().await;
    counted_together(&[&first, &second]).await;
    let mut held = Vec::new();
    for gateway in [&first, &second] {
        let mut session = first.user("alice@acme").through(gateway).modern();
        let call = session.prepare("tools/call", json!({"name": "hang", "arguments": {}}));
        held.push(tokio::spawn(async move { call.try_send().await }));
    }
    eventually("both run", async || {
        (hostile.calls().await.len() == 2).then_some(())
    })
    .await;
    for gateway in [&first, &second] {
        let mut session = first.user("alice@acme").through(gateway).modern();
        let answer = session.call("echo", json!({})).await;
        assert_eq!(answer.status, 429, "{answer:?}");
        let policy = answer.header("ratelimit-policy");
        assert_eq!(policy, Some("\"user\";q=2;qu=\"concurrent-requests\""));
    }
    // A caller that hangs up gives its place back to all replicas.
    held.remove(1).abort();
    let mut alice = first.user("alice@acme").modern();
    eventually("a place is free", async || {
        (alice.call("echo", json!({})).await.status == 200).then_some(())
    })
    .await;
    // What a dead replica holds ends by itself: within the lease.
    first.kill();
    let places = redis.ask(&["KEYS", "{acme}:places:user:*"]);
    let lives: i64 = redis.ask(&["PTTL", &places]).parse().unwrap();
    assert!((0..=30_000).contains(&lives), "{places}: {lives}");
}

/// C25: without a store that replicas share each has its part, and says so.
#[tokio::test]
async fn without_redis_limits_are_divided_among_the_replicas_that_live() {
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let first = Setup::new()
        .yaml("tenants: { acme: { limits: { per_user: { rate: 12/h, burst: 12 } } } }")
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    let mut second = first.replica().await;
    let third = first.replica().await;
    let see = async |gateway: &Gateway, count: u32| {
        eventually("it knows how many live", async || {
            let shown = format!("toolgate_live_replicas {count}\n");
            gateway.metrics().await.contains(&shown).then_some(())
        })
        .await;
    };
    for gateway in [&first, &second, &third] {
        see(gateway, 3).await;
        assert!(gateway.logs().contains("there is no `redis`"));
    }
    assert_eq!(
        passed(&[&first, &second, &third], "alice@acme", 24).await,
        12
    );
    assert!(second.sigterm_and_wait().await.success());
    for gateway in [&first, &third] {
        see(gateway, 2).await;
    }
    assert_eq!(
        passed(&[&first, &third], "alice@acme", 6).await,
        0,
        "another share is no new bucket"
    );
    assert_eq!(passed(&[&first, &third], "anna@acme", 24).await, 12);
}

/// TLS with a company's own authority, a user name and a password.
#[tokio::test]
async fn redis_is_reached_over_tls_by_name_and_password() {
    let folder = super::support::folder::Folder::new();
    let authority = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca = params.self_signed(&authority).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let issuer = rcgen::Issuer::from_params(&params, &authority);
    let leaf = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let path = |name: &str, text: &str| folder.file(name, text).display().to_string();
    let (ca, cert) = (path("ca.pem", &ca.pem()), path("cert.pem", &leaf.pem()));
    let key = path("key.pem", &key.serialize_pem());
    let port = super::support::process::free_port().to_string();
    let redis = Redis::start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
        "--user",
        "toolgate",
        "on",
        ">open-sesame",
        "~*",
        "+@all",
    ]);
    let password = path("password", "open-sesame\n");
    let url = format!("rediss://toolgate@localhost:{port}");
    let settings = |password: &str, ca: Option<&str>| {
        json!({"redis": {"url": url, "timeout": "2s", "password_file": password, "ca_file": ca}})
            .to_string()
    };
    let gateway = Setup::new()
        .yaml(&settings(&password, Some(&ca)))
        .start()
        .await;
    counted_together(&[&gateway]).await;
    gateway.user("alice@acme").connect(Era::Legacy).await;
    assert!(
        redis
            .ask(&["INFO", "commandstats"])
            .contains("cmdstat_evalsha")
    );
    let wrong = path("wrong", "hunter2-wrong");
    let refused = gateway.replica_unready(&settings(&wrong, Some(&ca)), &[]);
    let told = refused.logs().line_with("Redis is away").await;
    assert!(
        told.contains("password") && !told.contains("hunter2"),
        "{told}"
    );
    let stranger = gateway.replica_unready(&settings(&password, None), &[]);
    stranger.logs().line_with("Redis is away").await;
    for replica in [&gateway, &refused, &stranger] {
        assert!(!replica.logs().contains("open-sesame"));
    }
}
