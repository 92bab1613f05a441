//! Rows as they come back. The other half of where the two databases' types differ.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::{Row as _, types::Json};
use uuid::Uuid;

use crate::DbError;
use crate::sqlite::SqliteRow;

/// One row of either database.
pub enum Row {
    /// From PostgreSQL.
    Postgres(PgRow),
    /// From SQLite.
    Sqlite(SqliteRow),
}

type Column = &'static str;

fn unreadable(column: Column, why: impl ToString) -> DbError {
    DbError::Unreadable {
        column,
        why: why.to_string(),
    }
}

fn text_of(row: &SqliteRow, column: Column) -> Result<Option<&str>, DbError> {
    row.text(column).map_err(|why| unreadable(column, why))
}

fn int_of(row: &SqliteRow, column: Column) -> Result<Option<i64>, DbError> {
    row.int(column).map_err(|why| unreadable(column, why))
}

impl Row {
    pub(crate) fn opt_text(&self, column: Column) -> Result<Option<String>, DbError> {
        match self {
            Self::Postgres(row) => row.try_get(column).map_err(|e| unreadable(column, e)),
            Self::Sqlite(row) => Ok(text_of(row, column)?.map(ToOwned::to_owned)),
        }
    }

    pub(crate) fn text(&self, column: Column) -> Result<String, DbError> {
        required(column, self.opt_text(column)?)
    }

    pub(crate) fn opt_int(&self, column: Column) -> Result<Option<i64>, DbError> {
        match self {
            Self::Postgres(row) => row.try_get(column).map_err(|e| unreadable(column, e)),
            Self::Sqlite(row) => int_of(row, column),
        }
    }

    pub(crate) fn int(&self, column: Column) -> Result<i64, DbError> {
        required(column, self.opt_int(column)?)
    }

    /// A counter, which the schema keeps from being negative.
    pub(crate) fn count(&self, column: Column) -> Result<u64, DbError> {
        u64::try_from(self.int(column)?).map_err(|e| unreadable(column, e))
    }

    pub(crate) fn opt_count(&self, column: Column) -> Result<Option<u64>, DbError> {
        let number = self.opt_int(column)?;
        let count = number.map(|n| u64::try_from(n).map_err(|e| unreadable(column, e)));
        count.transpose()
    }

    pub(crate) fn opt_generation(
        &self,
        column: Column,
    ) -> Result<Option<ringfence_core::Generation>, DbError> {
        self.opt_int(column)?
            .map(|n| {
                u32::try_from(n)
                    .map(ringfence_core::Generation)
                    .map_err(|e| unreadable(column, e))
            })
            .transpose()
    }

    pub(crate) fn generation(&self, column: Column) -> Result<ringfence_core::Generation, DbError> {
        required(column, self.opt_generation(column)?)
    }

    pub(crate) fn flag(&self, column: Column) -> Result<bool, DbError> {
        match self {
            Self::Postgres(row) => row.try_get(column).map_err(|e| unreadable(column, e)),
            Self::Sqlite(row) => Ok(required(column, int_of(row, column)?)? != 0),
        }
    }

    pub(crate) fn opt_id(&self, column: Column) -> Result<Option<Uuid>, DbError> {
        match self {
            Self::Postgres(row) => row.try_get(column).map_err(|e| unreadable(column, e)),
            Self::Sqlite(row) => {
                let text = text_of(row, column)?;
                text.map(|text| Uuid::parse_str(text).map_err(|e| unreadable(column, e)))
                    .transpose()
            }
        }
    }

    pub(crate) fn id(&self, column: Column) -> Result<Uuid, DbError> {
        required(column, self.opt_id(column)?)
    }

    pub(crate) fn opt_time(&self, column: Column) -> Result<Option<DateTime<Utc>>, DbError> {
        match self {
            Self::Postgres(row) => row.try_get(column).map_err(|e| unreadable(column, e)),
            Self::Sqlite(row) => int_of(row, column)?
                .map(|m| {
                    DateTime::from_timestamp_micros(m)
                        .ok_or_else(|| unreadable(column, "no moment has this number"))
                })
                .transpose(),
        }
    }

    pub(crate) fn time(&self, column: Column) -> Result<DateTime<Utc>, DbError> {
        required(column, self.opt_time(column)?)
    }

    pub(crate) fn opt_json<T: DeserializeOwned>(&self, column: Column) -> Result<Option<T>, DbError> {
        match self {
            Self::Postgres(row) => row
                .try_get::<Option<Json<T>>, _>(column)
                .map(|json| json.map(|json| json.0))
                .map_err(|e| unreadable(column, e)),
            Self::Sqlite(row) => {
                let text = text_of(row, column)?;
                text.map(|text| serde_json::from_str(text).map_err(|e| unreadable(column, e)))
                    .transpose()
            }
        }
    }

    /// JSON in a column of text.
    pub(crate) fn opt_document<T: DeserializeOwned>(&self, column: Column) -> Result<Option<T>, DbError> {
        let text = self.opt_text(column)?;
        text.map(|text| serde_json::from_str(&text).map_err(|e| unreadable(column, e)))
            .transpose()
    }

    pub(crate) fn document<T: DeserializeOwned>(&self, column: Column) -> Result<T, DbError> {
        required(column, self.opt_document(column)?)
    }

    pub(crate) fn json<T: DeserializeOwned + 'static>(&self, column: Column) -> Result<T, DbError> {
        required(column, self.opt_json(column)?)
    }

    /// A word of one of our vocabularies.
    pub(crate) fn word<T>(&self, column: Column, read: fn(&str) -> Option<T>) -> Result<T, DbError> {
        let text = self.text(column)?;
        read(&text).ok_or_else(|| unreadable(column, format!("unknown word {text:?}")))
    }
}

fn required<T>(column: Column, value: Option<T>) -> Result<T, DbError> {
    value.ok_or_else(|| unreadable(column, "is null"))
}
