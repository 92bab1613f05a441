//! Values as they are bound to a statement. This is where the two databases' types differ.

use chrono::{DateTime, Utc};
use rusqlite::types::Value as Bound;
use serde::Serialize;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgHasArrayType, PgTypeInfo};
use sqlx::types::Json;
use sqlx::{Arguments, Encode, Error, Postgres, Type};
use uuid::Uuid;

/// One argument.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Uuid(Option<Uuid>),
    Text(Option<String>),
    Int(Option<i64>),
    Bool(bool),
    Time(Option<DateTime<Utc>>),
    /// JSON as text.
    Json(Option<String>),
    /// JSON in a column of text, which is quicker where no SQL looks into it.
    Document(String),
    /// Values of one kind as one argument.
    Array(Vec<Value>),
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

    /// A copy without the NUL character, which PostgreSQL keeps neither in text nor in JSON: what a device says must not stop
    /// the statement that records it.
    fn without_nul(self) -> Self {
        match self {
            Self::Text(Some(text)) => Self::Text(Some(text_without_nul(text))),
            Self::Json(Some(json)) => Self::Json(Some(json_without_nul(json))),
            Self::Document(json) => Self::Document(json_without_nul(json)),
            Self::Array(values) => Self::Array(values.into_iter().map(Self::without_nul).collect()),
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
    Vec<Uuid> => ids => Self::Array(ids.into_iter().map(Self::from).collect()),
    Vec<String> => texts => Self::Array(texts.into_iter().map(Self::from).collect()),
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

/// The column that says which thing is meant, and its value: a thing is named by its id or its name.
pub(crate) fn key(id_or_name: &str) -> (&'static str, Value) {
    match Uuid::parse_str(id_or_name) {
        Ok(id) => ("id", id.into()),
        Err(_) => ("name", id_or_name.into()),
    }
}

/// What PostgreSQL wants to see before the text of a `jsonb`.
const JSONB_VERSION: u8 = 1;
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

impl PgHasArrayType for JsonText {
    fn array_type_info() -> PgTypeInfo {
        <Json<()> as PgHasArrayType>::array_type_info()
    }
}

pub(crate) fn for_postgres(values: Vec<Value>) -> Result<PgArguments, Error> {
    let mut arguments = PgArguments::default();
    for value in values {
        match value.without_nul() {
            Value::Uuid(v) => arguments.add(v),
            Value::Text(v) => arguments.add(v),
            Value::Int(v) => arguments.add(v),
            Value::Bool(v) => arguments.add(v),
            Value::Time(v) => arguments.add(v),
            Value::Json(v) => arguments.add(v.map(JsonText)),
            Value::Document(v) => arguments.add(v),
            Value::Array(values) => add_array(&mut arguments, values),
        }
        .map_err(Error::Encode)?;
    }
    Ok(arguments)
}

/// An array of what its first value is: those of a column are of one kind.
fn add_array(arguments: &mut PgArguments, values: Vec<Value>) -> Result<(), BoxDynError> {
    macro_rules! add {
        ($($kind:pat => $value:expr),+) => {{
            let each = values.into_iter().map(|value| match value {
                $($kind => Ok($value),)+
                other => Err(format!("an array of one kind holds {other:?}").into()),
            });
            arguments.add(each.collect::<Result<Vec<_>, BoxDynError>>()?)
        }};
    }
    match values.first() {
        Some(Value::Int(_)) => add!(Value::Int(v) => v),
        Some(Value::Bool(_)) => add!(Value::Bool(v) => v),
        Some(Value::Time(_)) => add!(Value::Time(v) => v),
        Some(Value::Json(_)) => add!(Value::Json(v) => v.map(JsonText)),
        Some(Value::Text(_) | Value::Document(_)) => add!(Value::Text(v) => v, Value::Document(v) => Some(v)),
        Some(Value::Uuid(_) | Value::Array(_)) | None => add!(Value::Uuid(v) => v),
    }
}

/// Ids as text, moments as microseconds, JSON as text, flags as 0 and 1, arrays of ids and of texts as JSON.
pub(crate) fn for_sqlite(value: Value) -> Bound {
    match value.without_nul() {
        Value::Uuid(v) => v.map(|id| id.to_string()).into(),
        Value::Text(v) | Value::Json(v) => v.into(),
        Value::Int(v) => v.into(),
        Value::Bool(v) => i64::from(v).into(),
        Value::Time(v) => v.map(|at| at.timestamp_micros()).into(),
        Value::Document(v) => v.into(),
        Value::Array(values) => {
            let texts = values.into_iter().map(|value| match value {
                Value::Uuid(id) => id.map(|id| id.to_string()),
                Value::Text(text) => text,
                _ => None,
            });
            serde_json::Value::from_iter(texts).to_string().into()
        }
    }
}
