//! Rows of SQLite as they come back.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Error, Row, Statement};

/// One row, read whole: nothing of it is left in the connection.
pub struct SqliteRow {
    columns: Columns,
    values: Vec<Value>,
}

/// The names of a statement's columns, which its rows share.
pub(super) type Columns = Arc<[Box<str>]>;

impl SqliteRow {
    pub(super) fn columns(statement: &Statement<'_>) -> Columns {
        statement.column_names().into_iter().map(Into::into).collect()
    }

    pub(super) fn read(columns: &Columns, row: &Row<'_>) -> Result<Self, Error> {
        let values = (0..columns.len()).map(|index| row.get(index));
        Ok(Self {
            columns: Arc::clone(columns),
            values: values.collect::<Result<_, _>>()?,
        })
    }

    /// A text, or nothing where it is null; else why not.
    pub(crate) fn text(&self, column: &str) -> Result<Option<&str>, String> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            other => Err(format!("is {}, not text", other.data_type())),
        }
    }

    /// A whole number, or nothing where it is null; else why not.
    pub(crate) fn int(&self, column: &str) -> Result<Option<i64>, String> {
        match self.value(column)? {
            Value::Null => Ok(None),
            Value::Integer(number) => Ok(Some(*number)),
            other => Err(format!("is {}, not a whole number", other.data_type())),
        }
    }

    fn value(&self, column: &str) -> Result<&Value, String> {
        let index = self.columns.iter().position(|name| **name == *column);
        let value = index.and_then(|index| self.values.get(index));
        value.ok_or_else(|| "there is no such column".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use crate::sqlite::connection::Connection;
    use crate::value::args;

    fn connection() -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(
            &folder.path().join("t.db"),
            super::super::connection::Keeps::Lasting,
        )
        .unwrap();
        (folder, connection)
    }

    #[test]
    fn values_come_back_as_what_they_are_wherever_their_numbers_stand() {
        let (_folder, mut connection) = connection();
        let sql = "SELECT $2 AS second, $1 AS first, NULL AS none, $2 AS again, 1.5 AS half";
        let rows = connection.rows(sql, args!["a", 7_i64]).unwrap();
        let row = rows.first().unwrap();
        assert_eq!(row.int("second"), Ok(Some(7)));
        assert_eq!(row.int("again"), Ok(Some(7)));
        assert_eq!(row.text("first"), Ok(Some("a")));
        assert_eq!(row.text("none"), Ok(None));
        assert_eq!(row.int("none"), Ok(None));
        assert_eq!(row.int("first"), Err("is Text, not a whole number".to_owned()));
        assert_eq!(row.text("half"), Err("is Real, not text".to_owned()));
        assert_eq!(row.text("other"), Err("there is no such column".to_owned()));
    }

    #[test]
    fn a_value_that_is_missing_is_an_error() {
        let (_folder, mut connection) = connection();
        let error = connection.rows("SELECT $1, $2", args![true]).err().unwrap();
        assert!(
            matches!(error, rusqlite::Error::InvalidParameterCount(1, 2)),
            "{error}"
        );
    }
}
