//! Running statements, inside a transaction or outside.

use std::future::Future;

use sqlx::{SqlSafeStr, SqlStr};

use crate::DbError;
use crate::dialect::Dialect;
use crate::row::Row;
use crate::table_rows::TableRows;
use crate::value::Value;

/// Something that statements can be run on.
pub trait Run: sealed::Sealed + Send {
    /// Which database it is.
    #[doc(hidden)]
    fn dialect(&self) -> Dialect;

    /// All rows of a query.
    #[doc(hidden)]
    fn rows(&mut self, sql: SqlStr, values: Values)
    -> impl Future<Output = Result<Vec<Row>, DbError>> + Send;

    /// The number of rows that a statement changed.
    #[doc(hidden)]
    fn change(&mut self, sql: SqlStr, values: Values) -> impl Future<Output = Result<u64, DbError>> + Send;

    /// Writes rows into a table, all or none.
    #[doc(hidden)]
    fn write(&mut self, rows: TableRows) -> impl Future<Output = Result<(), DbError>> + Send;
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
    sql: impl SqlSafeStr,
    values: Vec<Value>,
) -> Result<Vec<Row>, DbError> {
    run.rows(sql.into_sql_str(), Values(values)).await
}

/// The first row of a query, if there is one.
pub(crate) async fn fetch_optional(
    run: &mut impl Run,
    sql: impl SqlSafeStr,
    values: Vec<Value>,
) -> Result<Option<Row>, DbError> {
    Ok(fetch_all(run, sql, values).await?.into_iter().next())
}

/// Changes rows and tells how many.
pub(crate) async fn execute(
    run: &mut impl Run,
    sql: impl SqlSafeStr,
    values: Vec<Value>,
) -> Result<u64, DbError> {
    run.change(sql.into_sql_str(), Values(values)).await
}

/// Writes rows into a table, all or none.
pub(crate) async fn write(run: &mut impl Run, rows: TableRows) -> Result<(), DbError> {
    if rows.is_empty() {
        return Ok(());
    }
    run.write(rows).await
}
