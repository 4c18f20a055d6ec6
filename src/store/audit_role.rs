//! As whom the audit is written: the role `toolgate_audit_writer`, or a login that
//! may do no more than it.

use std::sync::atomic::Ordering;

use sqlx::{ConnectOptions, Connection};
use tokio::time::timeout;

use super::connect::{AuditAccess, Store};
use super::error::StoreError;
use super::session::OwnSession;

impl Store {
    /// Connects as the lanes do, so that [`Store::audit_is_restricted`] is known.
    pub async fn check_audit_role(&self) -> Result<(), StoreError> {
        let access = self.audit_access();
        let checking = async {
            let mut session = access.connect().await?;
            restrict(&mut session, &access).await?;
            session.into_inner().close().await
        };
        match timeout(self.timeout(), checking).await {
            Ok(outcome) => outcome.map_err(|error| StoreError::of_connection(&error)),
            Err(_) => Err(StoreError::Unavailable("no connection in time".to_owned())),
        }
    }
}

impl AuditAccess {
    /// A connection, as whoever logs in.
    pub(super) async fn connect(&self) -> Result<OwnSession, sqlx::Error> {
        let connection = self.options.connect().await?;
        Ok(OwnSession::new(Box::new(connection), self.pooled))
    }
}

/// Makes a new connection one that can only add to the audit, if that can be
/// had, and says whether it may be used.
pub(super) async fn restrict(
    session: &mut OwnSession,
    access: &AuditAccess,
) -> Result<bool, sqlx::Error> {
    if access.takes_role {
        // What cannot be taken on is found out below.
        match sqlx::query!(
            "SELECT set_config('role', rolname, false) AS role FROM pg_roles
             WHERE rolname = 'toolgate_audit_writer' AND pg_has_role(rolname, 'MEMBER')
               AND has_table_privilege(rolname, to_regclass('audit_events'), 'INSERT')"
        )
        .fetch_optional(&mut *session)
        .await
        {
            Ok(_) | Err(sqlx::Error::Database(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let restricted = sqlx::query_scalar!(
        r#"SELECT NOT (has_table_privilege(t, 'UPDATE') OR has_table_privilege(t, 'DELETE')
                       OR has_table_privilege(t, 'TRUNCATE')) AS restricted
           FROM to_regclass('audit_events') AS t"#
    )
    .fetch_one(session)
    .await?;
    // Without tables nothing can be said, nor written.
    let Some(restricted) = restricted else {
        return Ok(true);
    };
    access.is_restricted.store(restricted, Ordering::Relaxed);
    if !restricted && !access.warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            required = access.required,
            "The audit is written by a login that could alter it: the role `toolgate_audit_writer` cannot be taken on. Let `toolgate migrate` make the roles, or give `database.audit.writer_url` (docs/operations.md)."
        );
    }
    Ok(restricted || !access.required)
}
