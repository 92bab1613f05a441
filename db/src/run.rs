//! Running statements, inside a transaction or outside.

use std::future::Future;

use sqlx::SqlStr;

use crate::DbError;
use crate::dialect::Dialect;
use crate::row::Row;
use crate::value::{MOST_ROWS, Value, pieces};

/// Something that statements can be run on.
pub trait Run: Write {
    /// All rows of a query.
    #[doc(hidden)]
    fn rows(&mut self, sql: SqlStr, values: Values)
    -> impl Future<Output = Result<Vec<Row>, DbError>> + Send;

    /// The number of rows that a statement changed.
    #[doc(hidden)]
    fn change(&mut self, sql: SqlStr, values: Values) -> impl Future<Output = Result<u64, DbError>> + Send;
}

/// Something that changes can be given to, at once or later.
pub trait Write: sealed::Sealed + Send {
    /// Which database it is.
    #[doc(hidden)]
    fn dialect(&self) -> Dialect;

    /// Whether a few rows of any number go into one statement. It would come in many lengths, of which a connection keeps some prepared.
    #[doc(hidden)]
    fn keeps_rows_together(&self) -> bool {
        false
    }

    /// Whether events are numbered in what is written: then `numbers.before` is the number before theirs, or none.
    #[doc(hidden)]
    fn numbers_events(&mut self) -> bool {
        false
    }

    /// Makes a change.
    #[doc(hidden)]
    fn write(&mut self, sql: SqlStr, values: Values) -> impl Future<Output = Result<(), DbError>> + Send;
}

/// Cuts rows into the statements that they go with.
pub(crate) fn cut<'r, T>(to: &impl Write, rows: &'r [T]) -> Vec<&'r [T]> {
    if to.keeps_rows_together() {
        rows.chunks(MOST_ROWS).collect()
    } else {
        pieces(rows).collect()
    }
}

/// Arguments of a statement.
pub struct Values(pub(crate) Vec<Value>);

pub(crate) mod sealed {
    /// Only this crate runs statements.
    pub trait Sealed {}
}

/// All rows of a query.
pub(crate) async fn fetch_all(
    run: &mut impl Run,
    sql: impl sqlx::SqlSafeStr,
    values: Vec<Value>,
) -> Result<Vec<Row>, DbError> {
    run.rows(sql.into_sql_str(), Values(values)).await
}

/// The first row of a query, if there is one.
pub(crate) async fn fetch_optional(
    run: &mut impl Run,
    sql: impl sqlx::SqlSafeStr,
    values: Vec<Value>,
) -> Result<Option<Row>, DbError> {
    Ok(run
        .rows(sql.into_sql_str(), Values(values))
        .await?
        .into_iter()
        .next())
}

/// Changes rows and tells how many.
pub(crate) async fn execute(
    run: &mut impl Run,
    sql: impl sqlx::SqlSafeStr,
    values: Vec<Value>,
) -> Result<u64, DbError> {
    run.change(sql.into_sql_str(), Values(values)).await
}

/// Makes a change, or adds it to others.
pub(crate) async fn write(
    to: &mut impl Write,
    sql: impl sqlx::SqlSafeStr,
    values: Vec<Value>,
) -> Result<(), DbError> {
    to.write(sql.into_sql_str(), Values(values)).await
}
