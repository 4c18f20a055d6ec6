//! A connection as the store's functions use it.
//!
//! Behind a transaction pooler each step of a statement (parse, bind, execute) may reach
//! another of the server's sessions, and a prepared statement's name may be somebody
//! else's there. So a statement has no name then, and is in a transaction of its own:
//! that keeps its steps together. It costs two more round trips to the pooler.

use std::fmt;
use std::ops::{Deref, DerefMut};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{
    PgArguments, PgConnection, PgQueryResult, PgRow, PgStatement, PgTypeInfo, Postgres,
};
use sqlx::{Either, Error, Execute, Executor, SqlStr};

/// A connection, and whether it leads through a transaction pooler.
pub(super) struct Session<C> {
    connection: C,
    pooled: bool,
    /// Whether a transaction may be open: a statement that was cut off leaves one.
    open: bool,
}

/// A connection of the audit's own.
pub(super) type OwnSession = Session<Box<PgConnection>>;

impl<C: DerefMut<Target = PgConnection>> Session<C> {
    pub(super) fn new(connection: C, pooled: bool) -> Self {
        Self {
            connection,
            pooled,
            open: false,
        }
    }

    pub(super) fn into_inner(self) -> C {
        self.connection
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    pub(super) fn inner(&mut self) -> &mut C {
        &mut self.connection
    }

    /// All that one statement gives, in a transaction of its own.
    async fn alone<'q, E>(&mut self, query: E) -> Result<Vec<Step>, Error>
    where
        E: Execute<'q, Postgres> + 'q,
    {
        self.open = true;
        sqlx::raw_sql("BEGIN")
            .execute(&mut *self.connection)
            .await?;
        let steps: Result<Vec<Step>, Error> = self
            .connection
            .fetch_many(Nameless(query))
            .try_collect()
            .await;
        let end = if steps.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = sqlx::raw_sql(end).execute(&mut *self.connection).await;
        self.open = ended.is_err();
        let steps = steps?;
        ended?;
        Ok(steps)
    }
}

type Step = Either<PgQueryResult, PgRow>;

/// A statement that is not kept under a name.
struct Nameless<E>(E);

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Nameless<E> {
    fn sql(self) -> SqlStr {
        self.0.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.0.take_arguments()
    }

    fn persistent(&self) -> bool {
        false
    }
}

impl<'c, C> Executor<'c> for &'c mut Session<C>
where
    C: DerefMut<Target = PgConnection> + Send,
{
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step, Error>>
    where
        'c: 'e,
        E: Execute<'q, Postgres> + 'q,
    {
        if !self.pooled {
            return self.connection.fetch_many(query);
        }
        stream::once(self.alone(query))
            .map_ok(|steps| stream::iter(steps.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: Execute<'q, Postgres> + 'q,
    {
        if !self.pooled {
            return self.connection.fetch_optional(query);
        }
        let row = |steps: Vec<Step>| steps.into_iter().find_map(Either::right);
        self.alone(query).map(move |steps| steps.map(row)).boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<sqlx::Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        self.connection.describe(sql)
    }
}

// The driver's options print their password.
impl<C> fmt::Debug for Session<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("pooled", &self.pooled)
            .finish_non_exhaustive()
    }
}

/// A connection lent by the pool, until it is taken out of it.
pub(super) struct Lent(Option<PoolConnection<Postgres>>);

impl Lent {
    pub(super) fn new(connection: PoolConnection<Postgres>) -> Self {
        Self(Some(connection))
    }

    /// Closes it rather than giving it back.
    pub(super) fn give_up(&mut self) {
        drop(self.0.take().map(PoolConnection::detach));
    }
}

const LENT: &str = "a connection is given up last of all";

impl Deref for Lent {
    type Target = PgConnection;

    #[expect(clippy::expect_used, reason = "given up at the end of a lease alone")]
    fn deref(&self) -> &PgConnection {
        self.0.as_ref().expect(LENT)
    }
}

impl DerefMut for Lent {
    #[expect(clippy::expect_used, reason = "given up at the end of a lease alone")]
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.0.as_mut().expect(LENT)
    }
}
