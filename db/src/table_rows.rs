//! Rows to write into a table, as either database is told of them.

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use crate::statement::{Form, Statement};
use crate::value::Value;

/// Rows to write into a table.
#[derive(Debug)]
pub struct TableRows {
    table: &'static str,
    /// Their names, separated by `, `.
    columns: String,
    rows: Vec<Vec<Value>>,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// They are added; this stands at the end of the statement.
    Insert(&'static str),
    /// They are put in the place of the rows with equal values in the first columns, so many of them, if this holds.
    Update(usize, &'static str),
}

impl TableRows {
    /// Adds rows. `end` may say what happens where there is such a row.
    pub(crate) fn insert(
        table: &'static str,
        columns: &str,
        rows: Vec<Vec<Value>>,
        end: &'static str,
    ) -> Self {
        Self {
            table,
            columns: columns.to_owned(),
            rows,
            how: How::Insert(end),
        }
    }

    /// Puts rows in the place of those with equal values in the first `keys` columns, if `condition` (`AND ...`) holds for them.
    pub(crate) fn update(
        table: &'static str,
        columns: &str,
        rows: Vec<Vec<Value>>,
        keys: usize,
        condition: &'static str,
    ) -> Self {
        Self {
            table,
            columns: columns.to_owned(),
            rows,
            how: How::Update(keys, condition),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A statement of PostgreSQL for all rows, and its values.
    pub(crate) fn for_all(self) -> (SqlStr, Vec<Value>) {
        let mut statement = Statement::default();
        self.push_to(&mut statement, Form::Arrays);
        let (sql, values) = statement.into_parts();
        (AssertSqlSafe(sql).into_sql_str(), values)
    }

    /// The rows as a part of another statement.
    pub(crate) fn push_to(self, statement: &mut Statement, form: Form) {
        let names = self.names("new.column");
        match self.how {
            How::Insert(end) => {
                statement.push(&format!(
                    "{}SELECT {} FROM ",
                    self.insert_into(),
                    names.join(", ")
                ));
                statement.push_rows(self.rows, form);
                statement.push(end);
            }
            How::Update(keys, condition) => {
                let (set, is) = self.set_where(&names, keys);
                statement.push(&format!("{set} FROM "));
                statement.push_rows(self.rows, form);
                statement.push(&format!("{is}{condition}"));
            }
        }
    }

    /// Adds rows as [`Self::push_to`] does, the last value of each counted from the column `before` of a part of the statement.
    pub(crate) fn push_counted_to(self, statement: &mut Statement, form: Form, part: &str) {
        let mut names = self.names("new.column");
        if let Some(last) = names.last_mut() {
            *last = format!("{part}.before + {last}");
        }
        let (insert, names) = (self.insert_into(), names.join(", "));
        statement.push(&format!("{insert}SELECT {names} FROM {part}, "));
        statement.push_rows(self.rows, form);
    }

    /// The statement for one row, for SQLite, and the rows to run it for.
    pub(crate) fn for_each(self) -> (String, Vec<Vec<Value>>) {
        let names = self.names("$");
        let text = match self.how {
            How::Insert(end) => format!("{}VALUES ({}){end}", self.insert_into(), names.join(", ")),
            How::Update(keys, condition) => {
                let (set, is) = self.set_where(&names, keys);
                format!("{set}{is}{condition}")
            }
        };
        (text, self.rows)
    }

    /// What stands for the values of a row.
    fn names(&self, before: &str) -> Vec<String> {
        let numbers = 1..=self.columns.split(", ").count();
        numbers.map(|number| format!("{before}{number}")).collect()
    }

    fn insert_into(&self) -> String {
        format!("INSERT INTO {} ({}) ", self.table, self.columns)
    }

    fn set_where(&self, names: &[String], keys: usize) -> (String, String) {
        let table = self.table;
        let columns: Vec<_> = self.columns.split(", ").zip(names).collect();
        let (keys, others) = columns.split_at(keys);
        let is = keys
            .iter()
            .map(|(column, name)| format!("{table}.{column} = {name}"));
        let set = others.iter().map(|(column, name)| format!("{column} = {name}"));
        let join = |parts: Vec<String>, between: &str| parts.join(between);
        (
            format!("UPDATE {table} SET {}", join(set.collect(), ", ")),
            format!(" WHERE {}", join(is.collect(), " AND ")),
        )
    }
}
