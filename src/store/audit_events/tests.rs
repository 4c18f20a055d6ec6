//! What the roles of the audit may do, and what not.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::time::Instant;

use super::*;
use crate::secret::Secret;
use crate::store::testing::{TestDatabase, database, database_settings, fresh_name, number, run};

const TABLES: [&str; 5] = [
    "audit_events",
    "audit_bodies",
    "audit_callers",
    "audit_names",
    "audit_writers",
];

/// Two calls, one a tenant, with caller and body.
async fn two_tenants(database: &TestDatabase) {
    run(
        &database.url,
        "INSERT INTO audit_names (name) VALUES ('acme'), ('globex'), ('crm_find');
         INSERT INTO audit_writers (replica_id, lane, started_at) VALUES (gen_random_uuid(), 1, now());
         INSERT INTO audit_events (at, sequence, call_id, writer_id, tenant_id, caller_id, tool_id, event, leaf, link)
         SELECT now(), 1, gen_random_uuid(), 1, n, n, 3, 1, '', '' FROM generate_series(1, 2) AS n;
         INSERT INTO audit_bodies (call_id, day, event, marks, digest, arguments, tenant_id)
         SELECT call_id, (at AT TIME ZONE 'UTC')::date, 1, 0, '', 'of ' || tenant_id, tenant_id FROM audit_events;
         INSERT INTO audit_callers (day, writer_id, caller_id, digest, subject, tenant_id)
         SELECT (now() AT TIME ZONE 'UTC')::date, 1, n, '', 'of ' || n, n FROM generate_series(1, 2) AS n",
    )
    .await;
}

/// Runs `sql`, which must be refused for want of a right.
async fn refused(connection: impl sqlx::PgExecutor<'_>, sql: &str) {
    let outcome = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    let fault = outcome.expect_err(sql);
    let fault = fault.as_database_error().expect(sql);
    assert_eq!(fault.code().as_deref(), Some("42501"), "{sql}: {fault}");
}

async fn count(connection: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(connection)
        .await
        .expect(sql)
}

#[tokio::test]
async fn the_connection_that_writes_the_audit_can_add_to_it_and_nothing_else() {
    let database = database().await;
    two_tenants(&database).await;
    let mut audit = database.store.audit_connection();
    audit
        .ready(Instant::now() + Duration::from_secs(5))
        .await
        .unwrap();
    assert!(database.store.audit_is_restricted());
    let (connection, _) = audit.live.as_mut().unwrap();
    let today = "SELECT tableoid::regclass::text FROM audit_events LIMIT 1";
    let partition = {
        let mut owner = PgConnection::connect(database.url.expose()).await.unwrap();
        let name: String = sqlx::query_scalar(today)
            .fetch_one(&mut owner)
            .await
            .unwrap();
        name
    };
    for table in TABLES.into_iter().chain([partition.as_str()]) {
        let column = if table == "audit_names" {
            "name_id"
        } else {
            "ctid"
        };
        for sql in [
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table}"),
            format!("DROP TABLE {table}"),
            format!("ALTER TABLE {table} ADD COLUMN x integer"),
            format!("CREATE INDEX ON {table} ({column})"),
            format!(
                "CREATE TRIGGER t BEFORE INSERT ON {table} EXECUTE FUNCTION suppress_redundant_updates_trigger()"
            ),
        ] {
            refused(&mut *connection, &sql).await;
        }
    }
    for sql in [
        "UPDATE audit_events SET outcome_id = 1",
        "UPDATE audit_bodies SET arguments = ''",
        "UPDATE audit_callers SET subject = ''",
        "UPDATE audit_names SET name = 'x'",
        "UPDATE audit_writers SET lane = 2",
        "ALTER TABLE audit_events DISABLE ROW LEVEL SECURITY",
        "DROP POLICY audit_events_read ON audit_events",
        "SELECT audit_drop_partition((now() AT TIME ZONE 'UTC')::date)",
        "SELECT arguments FROM audit_bodies",
        "SELECT subject FROM audit_callers",
        "SELECT outcome_id FROM audit_events",
        "INSERT INTO audit_readers VALUES ('me', 'acme')",
        "SELECT replica_id FROM replicas",
    ] {
        refused(&mut *connection, sql).await;
    }
    let rows = "SELECT count(*) FROM audit_events WHERE outcome_id IS NULL";
    assert_eq!(number(&database.url, rows).await, 2);
}

/// What `connection`, a reader, gets to see.
async fn sees(connection: &mut PgConnection) -> Vec<i64> {
    let mut seen = Vec::new();
    for sql in [
        "SELECT count(*) FROM audit_events",
        "SELECT count(*) FROM audit_bodies WHERE arguments LIKE 'of %'",
        "SELECT count(*) FROM audit_callers WHERE subject LIKE 'of %'",
        "SELECT count(*) FROM audit_tenant_calls",
        "SELECT coalesce(max(tenant_id), 0)::bigint FROM audit_events",
    ] {
        seen.push(count(connection, sql).await);
    }
    seen
}

async fn set(connection: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql))
        .execute(connection)
        .await
        .expect(sql);
}

#[tokio::test]
async fn a_reader_sees_the_rows_of_its_tenant_alone() {
    let database = database().await;
    two_tenants(&database).await;
    let mut owner = PgConnection::connect(database.url.expose()).await.unwrap();
    set(&mut owner, "SET ROLE toolgate_audit_reader").await;
    assert_eq!(
        sees(&mut owner).await,
        [0, 0, 0, 0, 0],
        "no tenant, no rows"
    );
    for (tenant, id) in [("acme", 1), ("globex", 2)] {
        set(&mut owner, &format!("SET toolgate.tenant = '{tenant}'")).await;
        assert_eq!(sees(&mut owner).await, [1, 1, 1, 1, id], "{tenant}");
    }
    for sql in [
        "SELECT name FROM audit_names",
        "SELECT * FROM audit_calls",
        "SELECT login FROM audit_readers",
        "DELETE FROM audit_events",
        "UPDATE audit_bodies SET arguments = ''",
        "INSERT INTO audit_names (name) VALUES ('x')",
    ] {
        refused(&mut owner, sql).await;
    }

    // A login of its own reads what it was given, whatever it asks for.
    let login = fresh_name();
    run(
        &database.url,
        &format!(
            "CREATE ROLE {login} LOGIN PASSWORD 'pw' IN ROLE toolgate_audit_reader;
             INSERT INTO audit_readers VALUES ('{login}', 'acme')"
        ),
    )
    .await;
    let mut reader = PgConnection::connect(as_login(&database.url, &login).expose())
        .await
        .unwrap();
    assert_eq!(sees(&mut reader).await, [1, 1, 1, 1, 1]);
    set(&mut reader, "SET toolgate.tenant = 'globex'").await;
    assert_eq!(sees(&mut reader).await, [1, 1, 1, 1, 1]);
    // Nor do its temporary tables stand in for ours.
    set(
        &mut reader,
        "CREATE TEMPORARY TABLE audit_readers AS SELECT session_user AS login, 'globex'::text AS tenant",
    )
    .await;
    assert_eq!(sees(&mut reader).await, [1, 1, 1, 1, 1]);
}

/// The same database for somebody else, whose password is `pw`.
fn as_login(url: &Secret<String>, login: &str) -> Secret<String> {
    let (_, rest) = url.expose().split_once('@').unwrap();
    Secret::new(format!("postgres://{login}:pw@{rest}"))
}

#[tokio::test]
async fn a_login_that_could_alter_the_audit_is_refused_where_roles_are_required() {
    let database = database().await;
    let login = fresh_name();
    run(
        &database.url,
        &format!(
            "CREATE ROLE {login} LOGIN PASSWORD 'pw';
             GRANT ALL ON ALL TABLES IN SCHEMA public TO {login}"
        ),
    )
    .await;
    let url = as_login(&database.url, &login);
    for required in [true, false] {
        let settings = crate::store::DatabaseSettings {
            audit_roles_required: required,
            ..database_settings(&url)
        };
        let store = Store::connect(&settings).unwrap();
        let mut audit = store.audit_connection();
        let ready = audit.ready(Instant::now() + Duration::from_secs(5)).await;
        assert_eq!(ready.is_err(), required, "{ready:?}");
        assert!(!store.audit_is_restricted());
    }
}

#[tokio::test]
async fn a_login_of_its_own_writes_the_audit() {
    let database = database().await;
    let login = fresh_name();
    run(
        &database.url,
        &format!("CREATE ROLE {login} LOGIN PASSWORD 'pw' IN ROLE toolgate_audit_writer"),
    )
    .await;
    let url = as_login(&database.url, &login);
    let settings = crate::store::DatabaseSettings {
        audit_writer_url: Some(&url),
        // As behind a pooler, where no role can be taken on.
        direct_url: Some(&database.url),
        ..database_settings(&database.url)
    };
    let store = Store::connect(&settings).unwrap();
    let mut audit = store.audit_connection();
    let until = Instant::now() + Duration::from_secs(5);
    audit.ready(until).await.unwrap();
    assert!(store.audit_is_restricted());
    let names = audit.insert_names(&["acme".to_owned()], until).await;
    assert_eq!(names.unwrap().len(), 1);
}

/// A login that owns nothing serves: everything but the audit, which it may read.
#[tokio::test]
async fn the_service_s_role_is_enough_to_serve_and_not_to_alter_the_audit() {
    let database = database().await;
    two_tenants(&database).await;
    let login = fresh_name();
    run(
        &database.url,
        &format!(
            "CREATE ROLE {login} LOGIN PASSWORD 'pw'
                 IN ROLE toolgate_service, toolgate_audit_writer, toolgate_audit_reader"
        ),
    )
    .await;
    let url = as_login(&database.url, &login);
    let store = crate::store::testing::connect(&url);
    let replica = crate::clock::new_replica_id(&crate::clock::SystemClock);
    store
        .insert_replica(replica, None, "0", Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(
        store.schema_state().await,
        Ok(crate::store::SchemaState::Current)
    );
    assert!(store.partition_figures().await.unwrap().days.len() >= 8);
    assert!(
        store.partition_upkeep().await.unwrap().is_none(),
        "not the owner"
    );
    let mut search = store.orphan_search().await.unwrap().unwrap();
    search.find_mark().await.unwrap();
    search.commit().await.unwrap();
    let mut connection = PgConnection::connect(url.expose()).await.unwrap();
    assert_eq!(
        count(&mut connection, "SELECT count(*) FROM audit_calls").await,
        2
    );
    for sql in [
        "DELETE FROM audit_events",
        "UPDATE audit_bodies SET arguments = ''",
        "DROP TABLE audit_callers",
    ] {
        refused(&mut connection, sql).await;
    }
}
