//! Statements that go to the database as one.
//!
//! A statement costs a round trip, which costs more than most statements do. Changes that nothing is read between are collected and go
//! together: to SQLite one after the other without coming back in between, to PostgreSQL as parts of one statement.

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::dialect::Dialect;
use crate::run::{Values, Write, sealed::Sealed};
use crate::value::{MOST_ROWS, Value};
use crate::{DbError, Tx};

/// Changes that wait to go together. They are given in an order in which they could be made one by one: SQLite keeps it. PostgreSQL
/// makes them in any order and looks at foreign keys when all are made, so that no two may be of the same row, and none may need
/// another one before it for anything but a foreign key.
#[derive(Debug)]
pub struct Batch {
    dialect: Dialect,
    statements: Vec<(SqlStr, Vec<Value>)>,
}

impl Sealed for Batch {}

impl Write for Batch {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// As parts of one statement they come in many lengths anyway.
    fn keeps_rows_together(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    async fn write(&mut self, sql: SqlStr, values: Values) -> Result<(), DbError> {
        self.statements.push((sql, values.0));
        Ok(())
    }
}

impl Batch {
    /// Whether so many rows of one table can be given to it and go into one statement.
    #[must_use]
    pub fn holds(rows: usize) -> bool {
        rows <= MOST_ROWS
    }

    /// Whether changes of this transaction are made one by one in their order, so that any may need one before it.
    #[must_use]
    pub fn keeps_order(tx: &Tx) -> bool {
        tx.dialect() == Dialect::Sqlite
    }

    /// An empty one for this transaction.
    #[must_use]
    pub fn of(tx: &Tx) -> Self {
        Self {
            dialect: tx.dialect(),
            statements: Vec::new(),
        }
    }

    /// Makes the changes and commits the transaction.
    pub async fn commit(self, tx: Tx) -> Result<(), DbError> {
        match (self.dialect, self.statements.is_empty()) {
            (_, true) => tx.commit().await,
            (Dialect::Sqlite, _) => tx.commit_with(self.statements).await,
            (Dialect::Postgres, _) => {
                let sql = AssertSqlSafe(self.text()).into_sql_str();
                let values = self.statements.into_iter().flat_map(|(_, values)| values);
                tx.commit_with(vec![(sql, values.collect())]).await
            }
        }
    }

    /// All of them as one statement of PostgreSQL.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut values = 0;
        for (at, (sql, own)) in self.statements.iter().enumerate() {
            let is_last = at + 1 == self.statements.len();
            match is_last {
                true if at > 0 => text.push_str(")\n"),
                true => {}
                false => {
                    let before = if at == 0 { "WITH" } else { ")," };
                    text.push_str(&format!("{before} part_{at} AS (\n"));
                }
            }
            push_shifted(&mut text, sql.as_str(), values);
            values += own.len();
        }
        text
    }
}

/// Adds a statement whose arguments come after `by` others.
pub(crate) fn push_shifted(text: &mut String, sql: &str, by: usize) {
    let mut rest = sql;
    while let Some(at) = rest.find('$') {
        let (before, after) = rest.split_at(at + 1);
        text.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = after.split_at(digits);
        match number.parse::<usize>() {
            Ok(number) => text.push_str(&(number + by).to_string()),
            Err(_) => text.push_str(number),
        }
        rest = after;
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::args;

    fn batch(count: usize) -> String {
        let statements = [
            ("UPDATE a SET b = $2 WHERE c = $1", args![1_u64, 2_u64]),
            ("DELETE FROM d", args![]),
            ("INSERT INTO e VALUES ($1, $10)", args![true]),
        ];
        let statements = statements.into_iter().take(count);
        let statements = statements
            .map(|(sql, values)| (sql.into_sql_str(), values))
            .collect();
        let dialect = Dialect::Postgres;
        Batch { dialect, statements }.text()
    }

    #[test]
    fn postgresql_takes_parts_of_one_statement() {
        let expected = "WITH part_0 AS (\nUPDATE a SET b = $2 WHERE c = $1), part_1 AS (\nDELETE FROM d)\n\
                        INSERT INTO e VALUES ($3, $12)";
        assert_eq!(batch(3), expected);
        assert_eq!(batch(1), "UPDATE a SET b = $2 WHERE c = $1");
        let two = "WITH part_0 AS (\nUPDATE a SET b = $2 WHERE c = $1)\nDELETE FROM d";
        assert_eq!(batch(2), two);
    }
}
