//! Values as they are bound to a statement. This is where the two databases' types differ.

use chrono::{DateTime, Utc};
use rusqlite::types::Value as Bound;
use serde::Serialize;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo};
use sqlx::types::Json;
use sqlx::{Arguments, Encode, Error, Postgres, Type};
use uuid::Uuid;

/// One argument.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Uuid(Option<Uuid>),
    Uuids(Vec<Uuid>),
    Text(Option<String>),
    Int(Option<i64>),
    Bool(bool),
    Time(Option<DateTime<Utc>>),
    /// JSON as text.
    Json(Option<String>),
    /// JSON in a column of text, which is quicker where nobody looks into it by SQL.
    Document(String),
}

impl Value {
    /// Anything as JSON. A value that cannot be written as JSON (none of ours) becomes JSON's null, which the schema refuses.
    pub fn json(value: &impl Serialize) -> Self {
        Self::Json(serde_json::to_string(value).ok())
    }

    /// Anything as a document. A value that cannot be written as JSON (none of ours) becomes an empty text, which the schema refuses.
    pub fn document(value: &impl Serialize) -> Self {
        Self::Document(serde_json::to_string(value).unwrap_or_default())
    }

    /// The same without the NUL character, which PostgreSQL keeps neither in text nor in JSON: what a device says must not stop
    /// the statement that records it.
    fn without_nul(self) -> Self {
        match self {
            Self::Text(Some(text)) => Self::Text(Some(text_without_nul(text))),
            Self::Json(Some(json)) => Self::Json(Some(json_without_nul(json))),
            Self::Document(json) => Self::Document(json_without_nul(json)),
            other => other,
        }
    }
}

fn text_without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// In JSON that character is always written as an escape.
fn json_without_nul(json: String) -> String {
    if !json.contains("\\u0000") {
        return json;
    }
    match serde_json::from_str(&json) {
        Ok(tree) => tree_without_nul(tree).to_string(),
        Err(_) => json,
    }
}

fn tree_without_nul(json: serde_json::Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match json {
        Json::String(text) => Json::String(text_without_nul(text)),
        Json::Array(items) => Json::Array(items.into_iter().map(tree_without_nul).collect()),
        Json::Object(map) => Json::Object(
            map.into_iter()
                .map(|(key, json)| (text_without_nul(key), tree_without_nul(json)))
                .collect(),
        ),
        Json::Null | Json::Bool(_) | Json::Number(_) => json,
    }
}

macro_rules! from {
    ($($type:ty => $value:ident => $make:expr),+ $(,)?) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Self {
                $make
            }
        })+
    };
}

from! {
    Uuid => id => Self::Uuid(Some(id)),
    Option<Uuid> => id => Self::Uuid(id),
    Vec<Uuid> => ids => Self::Uuids(ids),
    &str => text => Self::Text(Some(text.to_owned())),
    String => text => Self::Text(Some(text)),
    &String => text => Self::Text(Some(text.clone())),
    Option<String> => text => Self::Text(text),
    Option<&str> => text => Self::Text(text.map(ToOwned::to_owned)),
    i64 => number => Self::Int(Some(number)),
    Option<i64> => number => Self::Int(number),
    u32 => number => Self::Int(Some(i64::from(number))),
    Option<u32> => number => Self::Int(number.map(i64::from)),
    // The counters that use u64 start at 0 and count events of one host.
    u64 => number => Self::Int(Some(i64::try_from(number).unwrap_or(i64::MAX))),
    Option<u64> => number => Self::Int(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX))),
    bool => flag => Self::Bool(flag),
    DateTime<Utc> => at => Self::Time(Some(at)),
    Option<DateTime<Utc>> => at => Self::Time(at),
    Option<Value> => value => value.unwrap_or(Self::Text(None)),
    serde_json::Value => json => Self::Json(Some(json.to_string())),
}

/// `args![a, b, c]`
macro_rules! args {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::value::Value::from($value)),*]
    };
}
pub(crate) use args;

/// What PostgreSQL wants to see before the text of a `jsonb`.
const JSONB_VERSION: u8 = 1;
/// Rows that one statement adds at most: both databases take more arguments than these have.
pub(crate) const MOST_ROWS: usize = 64;

/// Cuts rows into pieces whose sizes are powers of two, so that a statement comes in a few lengths only and each stays prepared.
pub(crate) fn pieces<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let mut rest = rows;
    std::iter::from_fn(move || {
        let size = 1_usize << rest.len().checked_ilog2()?.min(MOST_ROWS.ilog2());
        let (piece, after) = rest.split_at(size);
        rest = after;
        Some(piece)
    })
}

/// What stands after VALUES for so many rows of so many columns: `($1, $2), ($3, $4)`. The arguments follow each other row by row.
pub(crate) fn rows_of(rows: usize, columns: usize) -> String {
    let mut text = String::with_capacity(rows * (columns * 5 + 4));
    for argument in 1..=rows * columns {
        let before = match (argument, argument % columns) {
            (1, _) => "($",
            (_, 1) => "), ($",
            _ if columns == 1 => "), ($",
            _ => ", $",
        };
        text.push_str(before);
        text.push_str(&argument.to_string());
    }
    text.push(')');
    text
}

/// Where the new values of a row stand in an `UPDATE`, the row's key being the first of them.
#[derive(Clone, Copy)]
pub(crate) enum NewValues {
    /// There is one row: they are the statement's arguments. SQLite would put a list of rows into a table of its own first.
    Arguments,
    /// There are several: they are the columns of a list that is called `new`.
    Columns,
}

impl NewValues {
    pub fn of(rows: usize) -> Self {
        if rows == 1 { Self::Arguments } else { Self::Columns }
    }

    /// The value with this number, from 1.
    pub fn name(self, number: usize) -> String {
        match self {
            Self::Arguments => format!("${number}"),
            Self::Columns => format!("new.column{number}"),
        }
    }

    /// What stands between the assignments and `WHERE`.
    pub fn from(self, rows: usize, columns: usize) -> String {
        match self {
            Self::Arguments => String::new(),
            Self::Columns => format!(" FROM (VALUES {}) AS new", rows_of(rows, columns)),
        }
    }
}

impl From<Value> for Result<Value, Error> {
    fn from(value: Value) -> Self {
        Ok(value)
    }
}

/// JSON that was written already.
struct JsonText(String);

impl Type<Postgres> for JsonText {
    fn type_info() -> PgTypeInfo {
        <Json<()> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for JsonText {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.push(JSONB_VERSION);
        buffer.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }
}

pub(crate) fn for_postgres(values: Vec<Value>) -> Result<PgArguments, Error> {
    let mut arguments = PgArguments::default();
    for value in values {
        match value.without_nul() {
            Value::Uuid(v) => arguments.add(v),
            Value::Uuids(v) => arguments.add(v),
            Value::Text(v) => arguments.add(v),
            Value::Int(v) => arguments.add(v),
            Value::Bool(v) => arguments.add(v),
            Value::Time(v) => arguments.add(v),
            Value::Json(v) => arguments.add(v.map(JsonText)),
            Value::Document(v) => arguments.add(v),
        }
        .map_err(Error::Encode)?;
    }
    Ok(arguments)
}

/// Ids as text, moments as microseconds, JSON as text, flags as 0 and 1.
pub(crate) fn for_sqlite(values: Vec<Value>) -> Vec<Bound> {
    let bound = |value: Value| match value.without_nul() {
        Value::Uuid(v) => v.map(|id| id.to_string()).into(),
        Value::Uuids(v) => {
            let list: Vec<String> = v.iter().map(Uuid::to_string).collect();
            serde_json::Value::from(list).to_string().into()
        }
        Value::Text(v) => v.into(),
        Value::Int(v) => v.into(),
        Value::Bool(v) => i64::from(v).into(),
        Value::Time(v) => v.map(|at| at.timestamp_micros()).into(),
        Value::Json(v) => v.into(),
        Value::Document(v) => v.into(),
    };
    values.into_iter().map(bound).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_few_sizes_and_hold_every_row_once_in_order() {
        for count in [0, 1, 2, 3, 13, 64, 100, 301] {
            let rows: Vec<usize> = (0..count).collect();
            let cut: Vec<_> = pieces(&rows).collect();
            assert!(
                cut.iter()
                    .all(|piece| piece.len().is_power_of_two() && piece.len() <= MOST_ROWS)
            );
            assert_eq!(cut.concat(), rows);
        }
    }

    #[test]
    fn every_row_has_arguments_of_its_own() {
        assert_eq!(rows_of(1, 2), "($1, $2)");
        assert_eq!(rows_of(3, 2), "($1, $2), ($3, $4), ($5, $6)");
        assert_eq!(rows_of(2, 1), "($1), ($2)");
    }

    #[test]
    fn one_row_needs_no_list() {
        let (one, two) = (NewValues::of(1), NewValues::of(2));
        assert_eq!((one.name(2), one.from(1, 2)), ("$2".to_owned(), String::new()));
        assert_eq!(two.name(2), "new.column2");
        assert_eq!(two.from(2, 2), " FROM (VALUES ($1, $2), ($3, $4)) AS new");
    }
}
