//! Migrations and first starts of several replicas (C35), on Postgres itself and through
//! Debian's `PgBouncer` in transaction mode.

use std::process::Command;
use std::time::{Duration, Instant};

use super::support::browser::Browser;
use super::support::config::TOOLGATE;
use super::support::oauth::{body, refresh, signed_in, status_at, text};
use super::support::pooler::Pooler;
use super::support::postgres::{self, Database};
use super::support::process::Process;
use super::support::sign_in::{desk, local_setup};
use super::support::{Era, Gateway, Helper, Setup, both, eventually, json};

/// `toolgate migrate`, by this many at once.
fn migrating(gateway: &Gateway, count: usize) -> Vec<Process> {
    let start = |_| {
        let mut command = Command::new(TOOLGATE);
        command
            .args(["migrate", "--config"])
            .arg(gateway.config_file());
        Process::start("migrate", &mut command)
    };
    (0..count).map(start).collect()
}

fn succeeded(mut command: Process) {
    let status = command.wait(Duration::from_mins(1)).expect("it ends");
    assert!(status.success(), "{}", command.output().tail(20));
}

/// Every migration once, in one piece.
fn each_once(database: &Database) {
    let applied = database.psql("select version, success from _sqlx_migrations order by 1");
    let mut files: Vec<String> = std::fs::read_dir("migrations")
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .map(|name| format!("{}|t", name.split('_').next().unwrap()))
        .collect();
    files.sort();
    assert_eq!(applied.lines().collect::<Vec<_>>(), files);
}

/// Three replicas and three migrations at once on a database without a table.
async fn first_start(database: &Database, config: &str) {
    let setup = local_setup().await.yaml(config);
    let first = setup.start_unready().await;
    let (second, third) = (
        first.replica_unready("{}", &[]),
        first.replica_unready("{}", &[]),
    );
    assert_eq!(first.admin_status("/readyz").await, Some(503));
    for command in migrating(&first, 3) {
        succeeded(command);
    }
    for replica in [&first, &second, &third] {
        replica.until_ready().await;
        eventually("it has the key", async || {
            let url = format!("{}/oauth/jwks", replica.url());
            let keys = body(&Browser::new().get(&url).await);
            (keys["keys"].as_array()?.len() == 1).then_some(())
        })
        .await;
    }
    each_once(database);
    let keys = database.psql("select count(*), count(distinct number) from oauth_signing_keys");
    assert_eq!(keys.trim(), "1|1", "one signing key");
    serves(&first, &[&second, &third]).await;
}

/// Calls of both eras, a sign-in and its refresh, on every replica.
async fn serves(first: &Gateway, others: &[&Gateway]) {
    let tokens = signed_in(first, &desk(first), "desk", "alice@acme.test").await;
    for replica in others {
        let refreshed = refresh(replica, "desk", text(&tokens, "refresh_token"), &[]).await;
        assert_eq!(refreshed.status, 200, "{refreshed:?}");
        assert_eq!(
            status_at(replica, "/mcp", text(&tokens, "access_token")).await,
            200
        );
        for era in both() {
            let caller = first.user("alice@acme").through(replica);
            let mut session = caller.connect(era).await;
            let answer = session.call("add", json!({"a": 1, "b": 2})).await;
            assert_eq!(answer.text(), "3", "{answer:?}");
        }
    }
}

/// C35 a.
#[tokio::test]
async fn replicas_that_start_at_once_on_an_empty_database_share_one_schema_and_one_key() {
    let database = postgres::shared().empty_database("first_start");
    let config = json!({"database": {"url": database.url()}}).to_string();
    first_start(&database, &config).await;
}

/// C35 b.
#[tokio::test]
async fn the_same_through_a_transaction_pooler() {
    let database = postgres::shared().empty_database("first_start_pooled");
    let pooler = Pooler::before(&database.url()).await;
    first_start(&database, &pooler.config(&database.url())).await;
}

/// C35 b: without a way past it no migration runs, whatever the pooler lets pass.
#[tokio::test]
async fn a_migration_through_a_transaction_pooler_is_refused_by_name() {
    let database = postgres::shared().empty_database("only_pooled");
    for ignored in ["extra_float_digits", "extra_float_digits,options"] {
        let pooler = Pooler::ignoring(&database.url(), ignored).await;
        let config = json!({"database": {"url": pooler.url(&database.url())}}).to_string();
        let gateway = Setup::new().yaml(&config).start_unready().await;
        let outcome = gateway.outcome(&["migrate"]);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(
            outcome.stderr.contains("database.direct_url"),
            "{outcome:?}"
        );
        let tables = "select count(*) from pg_class where relnamespace = 'public'::regnamespace";
        assert_eq!(database.psql(tables).trim(), "0", "nothing was made");
        assert_eq!(gateway.admin_status("/readyz").await, Some(503));
    }
}

/// Everything that a caller does, over few connections of the pooler's that many share.
#[tokio::test]
async fn calls_go_through_a_transaction_pooler() {
    let postgres = postgres::shared();
    let database = postgres.database();
    let pooler = Pooler::before(&database.url()).await;
    let hostile = Helper::example("upstream_hostile", &[]).await;
    let first = Setup::new()
        .yaml(&pooler.config(&database.url()))
        .upstream("up", hostile.config_of("/modern"))
        .start()
        .await;
    let second = first.replica().await;
    let mut asked = Vec::new();
    for number in 0..24 {
        let caller = first.user(&format!("user{number}@acme"));
        let caller = if number % 2 == 0 {
            caller
        } else {
            caller.through(&second)
        };
        let mut session = caller.connect(both()[number / 2 % 2]).await;
        asked.push(tokio::spawn(async move {
            for turn in 0..10 {
                let arguments = json!({"n": format!("p{number}-{turn}"), "ms": 5});
                let answer = session.call("slow", arguments).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                assert!(!answer.is_error(), "{answer:?}");
            }
            if session.era() == Era::Legacy {
                assert_eq!(session.delete().await.status, 204);
            }
        }));
    }
    for asked in asked {
        asked.await.unwrap();
    }
    let count = "select count(*), count(distinct call_id) from audit_calls where tool = 'slow' and outcome = 'ok'";
    assert_eq!(database.psql(count).trim(), "240|240");
    let open = "select count(*) from pg_stat_activity where state like 'idle in transaction%'
        and datname = current_database()";
    eventually("no transaction stays open", async || {
        (database.psql(open).trim() == "0").then_some(())
    })
    .await;
    for replica in [&first, &second] {
        for word in ["prepared statement", "SQLSTATE"] {
            assert!(
                !replica.logs().contains(word),
                "{}",
                replica.logs().tail(60)
            );
        }
    }
}

/// C35 c.
#[tokio::test]
async fn while_one_migrates_the_others_wait_alive_and_not_ready() {
    let database = postgres::shared().empty_database("slow_migration");
    slow(&database);
    let config = json!({"database": {"url": database.url()}}).to_string();
    let gateway = Setup::new().yaml(&config).start_unready().await;
    let mut commands = migrating(&gateway, 2);
    until_slow(&database).await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(gateway.admin_status("/healthz").await, Some(200));
        assert_eq!(gateway.admin_status("/readyz").await, Some(503));
        assert!(commands.iter_mut().all(|command| command.ended().is_none()));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    database.psql("delete from test.hold");
    for command in commands {
        succeeded(command);
    }
    gateway.until_ready().await;
    each_once(&database);
}

/// C35 d.
#[tokio::test]
async fn when_the_one_that_migrates_is_killed_the_next_takes_over() {
    let database = postgres::shared().empty_database("killed_migration");
    slow(&database);
    let config = json!({"database": {"url": database.url()}}).to_string();
    let gateway = Setup::new().yaml(&config).start_unready().await;
    let mut holder = migrating(&gateway, 1).remove(0);
    until_slow(&database).await;
    let mut next = migrating(&gateway, 1).remove(0);
    holder.kill();
    assert!(next.ended().is_none());
    // Its session waits on: the server finds by itself that nobody is there any more.
    // Only whoever comes after is not made to wait.
    database.psql("drop event trigger slow");
    succeeded(next);
    gateway.until_ready().await;
    each_once(&database);
}

/// Has migrations wait in the middle for as long as there is a row in `test.hold`.
fn slow(database: &Database) {
    database.psql(
        "create schema test;
         grant usage on schema test to public;
         create table test.hold as select 1 as one;
         grant select on test.hold to public;
         create function slow() returns event_trigger language plpgsql as $$ begin
             while to_regclass('public.session_states') is not null
                 and exists (select from test.hold) loop
                 perform pg_sleep(0.05);
             end loop;
         end $$;
         create event trigger slow on ddl_command_start when tag in ('CREATE TABLE')
             execute function slow()",
    );
}

async fn until_slow(database: &Database) {
    let asleep = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'
        and datname = current_database()";
    eventually("it sleeps in the middle", async || {
        (database.psql(asleep).trim() == "1").then_some(())
    })
    .await;
}
