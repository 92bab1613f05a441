//! What can go wrong with the database.

use rusqlite::ffi::{
    SQLITE_BUSY, SQLITE_CANTOPEN, SQLITE_CONSTRAINT_CHECK, SQLITE_CONSTRAINT_FOREIGNKEY,
    SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_TRIGGER, SQLITE_CONSTRAINT_UNIQUE, SQLITE_FULL,
    SQLITE_IOERR, SQLITE_LOCKED, SQLITE_NOMEM, SQLITE_READONLY,
};
use sqlx::error::DatabaseError;

/// A fault of the database, or of what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The address cannot be used: it cannot be read, or the server refuses the user that it names. The text names no password.
    #[error("the database address {address} cannot be used: {why}")]
    Address {
        /// Without credentials.
        address: String,
        /// What is wrong with it, and what is allowed.
        why: String,
    },
    /// The database is not there, or went away.
    #[error("the database at {address} cannot be reached")]
    Unavailable {
        /// Without credentials.
        address: String,
        /// What the client saw.
        #[source]
        source: ClientError,
    },
    /// It answers, and writes nothing down.
    #[error(
        "the database at {address} writes nothing down: it is full, read-only, out of memory, or its disk fails"
    )]
    NoWrites {
        /// Without credentials.
        address: String,
        /// What the client saw.
        #[source]
        source: ClientError,
    },
    /// A change that was upon something as it was read: it is not so any more, and nothing was changed.
    #[error("what the change was decided upon has changed since it was read")]
    Changed,
    /// A statement failed.
    #[error("the database refused a statement")]
    Statement(#[source] ClientError),
    /// A constraint said no: a name that is taken, a row that is in use.
    #[error("the database's constraint {constraint} was violated")]
    Constraint {
        /// The constraint's name, or what the database says of it.
        constraint: String,
        /// Whether a value exists already.
        is_duplicate: bool,
        /// What the client saw.
        #[source]
        source: ClientError,
    },
    /// A row holds something that cannot be read.
    #[error("column {column} holds something that cannot be read: {why}")]
    Unreadable {
        /// Which.
        column: &'static str,
        /// Why.
        why: String,
    },
    /// A migration failed.
    #[error("the schema could not be brought up to date")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    /// A copy of a database is damaged.
    #[error("the database at {address} is damaged: {why}")]
    Damaged {
        /// Which.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The schema is not this build's own.
    #[error("{0}")]
    Schema(String),
}

impl DbError {
    /// Whether trying again later can help: the database is at fault, not the argument.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::NoWrites { .. } => true,
            Self::Address { .. }
            | Self::Changed
            | Self::Statement(_)
            | Self::Constraint { .. }
            | Self::Unreadable { .. }
            | Self::Migrate(_)
            | Self::Damaged { .. }
            | Self::Schema(_) => false,
        }
    }

    /// Sorts what a client saw.
    pub(crate) fn from_client(address: &str, source: impl Into<ClientError>) -> Self {
        let source = source.into();
        match seen(&source) {
            Seen::Lost => Self::Unavailable {
                address: address.to_owned(),
                source,
            },
            Seen::NoWrites => Self::NoWrites {
                address: address.to_owned(),
                source,
            },
            Seen::Changed => Self::Changed,
            Seen::NotAdmitted(why) => Self::Address {
                address: address.to_owned(),
                why,
            },
            Seen::Violated {
                constraint,
                is_duplicate,
            } => Self::Constraint {
                constraint,
                is_duplicate,
                source,
            },
            Seen::Refused => Self::Statement(source),
        }
    }
}

/// What a client of a database says of a fault.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The one for PostgreSQL.
    #[error(transparent)]
    Postgres(#[from] sqlx::Error),
    /// SQLite.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// All connections were in use for as long as a caller waits.
    #[error("no connection became free")]
    NoneFree,
    /// The connections were closed, or a transaction was given up.
    #[error("the connection is closed")]
    Closed,
    /// The thread that did the work did not end in order.
    #[error("the work was cut short")]
    Thread(#[source] tokio::task::JoinError),
    /// The work panicked on the thread that asked for it.
    #[error("the work panicked")]
    Panicked,
}

/// What it comes to.
enum Seen {
    Lost,
    NoWrites,
    Changed,
    NotAdmitted(String),
    Violated { constraint: String, is_duplicate: bool },
    Refused,
}

fn seen(error: &ClientError) -> Seen {
    match error {
        ClientError::Postgres(sqlx::Error::Database(said)) => seen_by_postgres(&**said),
        ClientError::Sqlite(rusqlite::Error::SqliteFailure(code, said)) => {
            seen_by_sqlite(code.extended_code, said.as_deref())
        }
        ClientError::Postgres(
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed,
        )
        | ClientError::NoneFree
        | ClientError::Closed
        | ClientError::Thread(_)
        | ClientError::Panicked => Seen::Lost,
        ClientError::Postgres(_) | ClientError::Sqlite(_) => Seen::Refused,
    }
}

fn seen_by_postgres(said: &dyn DatabaseError) -> Seen {
    let code = said.code().unwrap_or_default();
    if code == CHANGED {
        return Seen::Changed;
    }
    if is_passing_code(&code) {
        return Seen::Lost;
    }
    if is_no_writes_code(&code) {
        return Seen::NoWrites;
    }
    if is_admission_code(&code) {
        return Seen::NotAdmitted(said.message().to_owned());
    }
    if said.is_unique_violation() || said.is_foreign_key_violation() || said.is_check_violation() {
        return Seen::Violated {
            constraint: said.constraint().unwrap_or(said.message()).to_owned(),
            is_duplicate: said.is_unique_violation(),
        };
    }
    Seen::Refused
}

/// It does not name a constraint; what it says of it stands for the name.
fn seen_by_sqlite(code: i32, said: Option<&str>) -> Seen {
    let is_duplicate = matches!(code, SQLITE_CONSTRAINT_UNIQUE | SQLITE_CONSTRAINT_PRIMARYKEY);
    match code {
        SQLITE_CONSTRAINT_UNIQUE
        | SQLITE_CONSTRAINT_PRIMARYKEY
        | SQLITE_CONSTRAINT_FOREIGNKEY
        | SQLITE_CONSTRAINT_CHECK
        | SQLITE_CONSTRAINT_TRIGGER => Seen::Violated {
            constraint: said.unwrap_or("without a name").to_owned(),
            is_duplicate,
        },
        // An extended code has the plain one in its low byte.
        _ if matches!(code & 0xff, SQLITE_BUSY | SQLITE_LOCKED) => Seen::Lost,
        _ if matches!(
            code & 0xff,
            SQLITE_FULL | SQLITE_IOERR | SQLITE_READONLY | SQLITE_CANTOPEN | SQLITE_NOMEM
        ) =>
        {
            Seen::NoWrites
        }
        _ => Seen::Refused,
    }
}

/// Raised by the functions of ours that a change alone begins and ends with.
const CHANGED: &str = "RF001";
/// PostgreSQL: connection exceptions (08), shutdown and crash (57P), too many connections (53300), serialisation and deadlock (40), a statement,
/// a lock or a transaction that took too long (57014, 55P03, 25P03).
fn is_passing_code(code: &str) -> bool {
    ["08", "57P", "40"].iter().any(|class| code.starts_with(class))
        || matches!(code, "53300" | "57014" | "55P03" | "25P03")
}

/// PostgreSQL: a transaction that may only read (25006), insufficient resources such as a full disk (53100) or no memory (53200), and a
/// disk that fails (58030).
fn is_no_writes_code(code: &str) -> bool {
    matches!(code, "25006" | "53100" | "53200" | "58030")
}

/// PostgreSQL refuses this user and password (28), or has no such database (3D000).
fn is_admission_code(code: &str) -> bool {
    code.starts_with("28") || code == "3D000"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_stays() {
        for code in [
            "08006", "57P01", "57P03", "40001", "40P01", "53300", "57014", "55P03", "25P03",
        ] {
            assert!(is_passing_code(code), "{code}");
        }
        for code in ["25006", "53100", "53200", "58030"] {
            assert!(is_no_writes_code(code), "{code}");
        }
        for code in ["23505", "42601", "28P01", "00005", ""] {
            assert!(!is_passing_code(code), "{code}");
        }
    }

    /// Busy and locked, each plain and extended; an error, a column that must not be null.
    #[test]
    fn the_same_of_sqlite() {
        for code in [5, 6, 261, 262, 517, 773] {
            assert!(matches!(seen_by_sqlite(code, None), Seen::Lost), "{code}");
        }
        // A disk that fails, a full one, a file that may only be read or cannot be opened, no memory.
        for code in [10, 778, 13, 8, 1032, 14, 7] {
            assert!(matches!(seen_by_sqlite(code, None), Seen::NoWrites), "{code}");
        }
        for code in [1, 1299] {
            assert!(matches!(seen_by_sqlite(code, None), Seen::Refused), "{code}");
        }
        for (code, expected) in [
            (2067, true),
            (1555, true),
            (787, false),
            (275, false),
            (1811, false),
        ] {
            let seen = seen_by_sqlite(code, Some("a name"));
            let Seen::Violated {
                constraint,
                is_duplicate,
            } = seen
            else {
                panic!("{code} is a violated constraint");
            };
            assert_eq!(
                (constraint.as_str(), is_duplicate),
                ("a name", expected),
                "{code}"
            );
        }
    }
}
