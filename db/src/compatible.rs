//! Which builds can go on beside a schema that is newer than their own, so that services are upgraded one after the other.
//!
//! A migration that is named here leaves alone what builds of the schemas before it read and write: it adds tables, indexes or
//! columns that may stay empty or have a default, puts no new words where older builds look, and holds nothing that is wrong when an
//! older build does not keep it up to date. A column that older builds read keeps its name and its type: their statements name it, and
//! were prepared for what it was. What is not named here ends older builds.

use std::ops::RangeInclusive;

use crate::DbError;
use crate::dialect::Dialect;
use crate::run::{Run, fetch_all};
use crate::value::args;

/// The number of a migration, and of the oldest schema whose builds can go on once it was carried out.
type Entry = (i64, i64);

/// What the migrations after the first one say of it.
const COMPATIBLE_FROM: &[Entry] = &[];

/// What the migration itself writes down of this, in its own transaction: a build that is older than this one cannot know it.
pub(crate) fn note(version: i64) -> Option<String> {
    note_of(COMPATIBLE_FROM, version)
}

fn note_of(entries: &[Entry], version: i64) -> Option<String> {
    let oldest = compatible_from(entries, version)?;
    Some(format!(
        "\nINSERT INTO schema_compatibility (version, compatible_from) VALUES ({version}, {oldest});\n"
    ))
}

/// The first of the migrations of this build beyond `found` that ends builds of the schema `found`.
pub(crate) fn first_break(found: i64, beyond: impl Iterator<Item = i64>) -> Option<i64> {
    first_break_of(COMPATIBLE_FROM, found, beyond)
}

fn first_break_of(entries: &[Entry], found: i64, beyond: impl Iterator<Item = i64>) -> Option<i64> {
    let mut beyond = beyond.filter(|version| *version > found);
    beyond.find(|version| compatible_from(entries, *version).is_none_or(|oldest| oldest > found))
}

/// Whether a build of the schema `own` can go on although the migrations `beyond` were carried out. `false` if the database does not
/// say so of each of them.
pub(crate) async fn goes_on(
    run: &mut impl Run,
    own: i64,
    beyond: RangeInclusive<i64>,
) -> Result<bool, DbError> {
    let known = match run.dialect() {
        Dialect::Postgres => "SELECT 1 AS found WHERE to_regclass('schema_compatibility') IS NOT NULL",
        Dialect::Sqlite => "SELECT 1 AS found FROM sqlite_master WHERE name = 'schema_compatibility'",
    };
    if fetch_all(run, known, args![]).await?.is_empty() {
        return Ok(false);
    }
    let against = "SELECT m.version FROM _sqlx_migrations m
         LEFT JOIN schema_compatibility c ON c.version = m.version
         WHERE m.success AND m.version BETWEEN $1 AND $2
           AND (c.compatible_from IS NULL OR c.compatible_from > $3)";
    let rows = fetch_all(run, against, args![*beyond.start(), *beyond.end(), own]).await?;
    Ok(rows.is_empty())
}

fn compatible_from(entries: &[Entry], version: i64) -> Option<i64> {
    let entry = entries.iter().find(|(number, _)| *number == version);
    entry.map(|(_, oldest)| *oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_of_itself_ends_older_builds() {
        let entries = [(3, 2)];
        assert_eq!(first_break_of(&entries, 2, 1..=3), None);
        assert_eq!(first_break_of(&entries, 1, 1..=3), Some(2));
        assert_eq!(first_break_of(&entries, 3, 1..=3), None);
        assert_eq!(note_of(&entries, 1), None);
        assert!(note_of(&entries, 3).is_some_and(|text| text.contains("(3, 2)")));
    }

    #[test]
    fn a_migration_is_compatible_with_what_is_before_it_only() {
        assert!(
            COMPATIBLE_FROM
                .iter()
                .all(|(version, oldest)| 0 < *oldest && oldest < version)
        );
    }
}
