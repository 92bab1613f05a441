//! A change of one host that is a transaction of its own.
//!
//! A transaction is a round trip to begin, two to lock and read, one to write, one to commit, and a lone fence is made of them. Here
//! the host is read without a lock, and what was decided upon it is written and committed by one statement, which ends with an error
//! if somebody has changed the host in between.

use ringfence_core::Timestamp;
use sqlx::postgres::PgArguments;
use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::batch::push_shifted;
use crate::database::Pool;
use crate::dialect::Dialect;
use crate::postgres::Connections;
use crate::run::{Values, Write, sealed::Sealed};
use crate::value::{Value, args, for_postgres};
use crate::{Database, DbError, SeenHost};

/// Changes of one host that go as one statement and are committed by it. As with a [`crate::Batch`], no two may be of the same row,
/// and none may need another one before it for anything but a foreign key.
#[derive(Debug)]
pub struct LoneChange {
    upon: Vec<Value>,
    parts: Vec<Part>,
    tells: bool,
}

#[derive(Debug)]
struct Part {
    sql: SqlStr,
    values: Vec<Value>,
    /// How many rows it has to return.
    must: Option<usize>,
}

/// A change that was committed.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// Whether its events have their numbers, and everybody was told. If not they wait for [`crate::number_events`].
    pub is_numbered: bool,
}

impl Sealed for LoneChange {}

impl Write for LoneChange {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn keeps_rows_together(&self) -> bool {
        true
    }

    fn numbers_events(&mut self) -> bool {
        self.tells = true;
        true
    }

    async fn write(&mut self, sql: SqlStr, values: Values) -> Result<(), DbError> {
        self.parts.push(Part {
            sql,
            values: values.0,
            must: None,
        });
        Ok(())
    }
}

impl LoneChange {
    /// An empty one, upon a host as it was seen. `None` on SQLite, which has one writer and no round trips to save.
    #[must_use]
    pub fn upon(seen: &SeenHost) -> Option<Self> {
        let version = seen.version.clone()?;
        Some(Self {
            upon: args![seen.state.host.id.0, version],
            parts: Vec::new(),
            tells: false,
        })
    }

    /// Adds a statement that has to return so many rows, or nothing is changed at all.
    pub(crate) fn must(&mut self, rows: usize, sql: String, values: Vec<Value>) {
        self.parts.push(Part {
            sql: AssertSqlSafe(sql).into_sql_str(),
            values,
            must: Some(rows),
        });
    }

    /// Nothing is changed if it is later than that by the database's clock.
    pub fn not_after(&mut self, at: Timestamp) {
        self.must(1, "SELECT 1 WHERE clock_timestamp() <= $1".to_owned(), args![at]);
    }

    /// Makes the changes and commits them.
    ///
    /// # Errors
    /// [`DbError::Changed`] if the host is not as it was seen, or a statement that had to has not returned its rows: nothing was
    /// changed.
    pub async fn commit(self, db: &Database) -> Result<Written, DbError> {
        let Pool::Postgres { write, .. } = &db.pool else {
            return Err(DbError::Changed);
        };
        let sql = self.text();
        let values = self.upon.into_iter().chain([self.tells.into()]);
        let values = values.chain(self.parts.into_iter().flat_map(|part| part.values));
        let fault = |e| DbError::from_client(db.address(), e);
        let arguments = for_postgres(values.collect()).map_err(fault)?;
        let before = one_number(write, sql, arguments).await.map_err(fault)?;
        Ok(Written {
            is_numbered: before.is_some(),
        })
    }

    /// The function locks the host and gives the number; it is called first, so that everybody locks hosts before anything else.
    fn text(&self) -> String {
        let mut text =
            "WITH numbers AS MATERIALIZED (SELECT begin_change_upon($1, $2, $3) AS before)".to_owned();
        let mut values = self.upon.len() + 1;
        let mut conditions = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            text.push_str(&format!(",\npart_{at} AS (\n"));
            push_shifted(&mut text, part.sql.as_str(), values);
            text.push(')');
            values += part.values.len();
            if let Some(must) = part.must {
                conditions.push(format!("(SELECT count(*) FROM part_{at}) = {must}"));
            }
        }
        let conditions = match conditions.as_slice() {
            [] => "true".to_owned(),
            some => format!("end_change_unless({})", some.join(" AND ")),
        };
        text.push_str(&format!("\nSELECT numbers.before, {conditions} FROM numbers"));
        text
    }
}

async fn one_number(
    connections: &Connections,
    sql: String,
    arguments: PgArguments,
) -> Result<Option<i64>, sqlx::Error> {
    let mut lent = connections.take().await?;
    let statement = sqlx::query_scalar_with(AssertSqlSafe(sql), arguments);
    let rows: Vec<Option<i64>> = statement.fetch_all(lent.connection()?).await?;
    lent.give_back();
    Ok(rows.into_iter().next().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(sql: &'static str, values: Vec<Value>, must: Option<usize>) -> Part {
        Part {
            sql: sql.into_sql_str(),
            values,
            must,
        }
    }

    #[test]
    fn it_is_one_statement_that_begins_with_the_host() {
        let alone = LoneChange {
            upon: args![1_u64, 2_u64],
            parts: vec![
                part("UPDATE a SET b = $1 RETURNING 1", args![1_u64], Some(1)),
                part("DELETE FROM c WHERE d = $1", args![1_u64], None),
            ],
            tells: false,
        };
        let expected = "WITH numbers AS MATERIALIZED (SELECT begin_change_upon($1, $2, $3) AS before),\n\
                        part_0 AS (\nUPDATE a SET b = $4 RETURNING 1),\npart_1 AS (\nDELETE FROM c WHERE d = $5)\n\
                        SELECT numbers.before, end_change_unless((SELECT count(*) FROM part_0) = 1) FROM numbers";
        assert_eq!(alone.text(), expected);
    }
}
