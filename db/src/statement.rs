//! Statements whose values get their numbers as they are added.

use crate::value::Value;

/// A statement that is written piece by piece.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    text: String,
    values: Vec<Value>,
}

/// How rows are given to PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Value by value. The text of the statement depends on how many rows there are.
    List,
    /// An array for each column. The text does not depend on the number of rows, so that the statement stays prepared; a few rows cost more than as a list.
    Arrays,
}

impl Statement {
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a value; returns what stands for it in a text.
    pub fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    /// Adds values; returns what stands for them in a list.
    pub fn bind_all(&mut self, values: impl IntoIterator<Item = Value>) -> String {
        let names: Vec<_> = values.into_iter().map(|value| self.bind(value)).collect();
        names.join(", ")
    }

    /// Adds rows that have values each, as a table `new` with the columns `column1`, `column2` and so on.
    pub fn push_rows(&mut self, rows: Vec<Vec<Value>>, form: Form) {
        match form {
            Form::List => {
                let rows: Vec<_> = rows
                    .into_iter()
                    .map(|row| format!("({})", self.bind_all(row)))
                    .collect();
                self.push(&format!("(VALUES {}) AS new", rows.join(", ")));
            }
            Form::Arrays => {
                let columns = columns_of(rows);
                let names: Vec<_> = (1..=columns.len())
                    .map(|number| format!("column{number}"))
                    .collect();
                let arrays = self.bind_all(columns.into_iter().map(Value::Array));
                self.push(&format!("unnest({arrays}) AS new({})", names.join(", ")));
            }
        }
    }

    pub fn into_parts(self) -> (String, Vec<Value>) {
        (self.text, self.values)
    }
}

fn columns_of(rows: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let count = rows.len();
    let mut columns = Vec::new();
    for row in rows {
        columns.resize_with(row.len(), || Vec::with_capacity(count));
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::args;

    fn rows() -> Vec<Vec<Value>> {
        vec![args!["a", 1_i64], args!["b", 2_i64]]
    }

    fn statement(form: Form) -> (String, usize) {
        let mut statement = Statement::default();
        let first = statement.bind(true);
        statement.push(&format!("SELECT {first} FROM "));
        statement.push_rows(rows(), form);
        let (text, values) = statement.into_parts();
        (text, values.len())
    }

    #[test]
    fn a_list_has_a_number_for_each_value() {
        let text = "SELECT $1 FROM (VALUES ($2, $3), ($4, $5)) AS new";
        assert_eq!(statement(Form::List), (text.to_owned(), 5));
    }

    #[test]
    fn arrays_have_one_for_each_column() {
        let text = "SELECT $1 FROM unnest($2, $3) AS new(column1, column2)";
        assert_eq!(statement(Form::Arrays), (text.to_owned(), 3));
    }
}
