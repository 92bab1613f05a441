//! What can go wrong with the database.

/// A fault of the database, or of what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The address cannot be used: it cannot be read, or the server lets nobody in with it. The text names no password.
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
        source: sqlx::Error,
    },
    /// A change that was upon something as it was read: it is not so any more, and nothing was changed.
    #[error("what the change was decided upon has changed since it was read")]
    Changed,
    /// A statement failed.
    #[error("the database refused a statement")]
    Statement(#[source] sqlx::Error),
    /// A constraint said no: a name that is taken, a row that is in use.
    #[error("the database's constraint {constraint} was violated")]
    Constraint {
        /// The constraint's name, or what the database says of it.
        constraint: String,
        /// Whether a value exists already.
        is_duplicate: bool,
        /// What the client saw.
        #[source]
        source: sqlx::Error,
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
    /// Whether trying again later can help: the connection was lost, not the argument.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
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

    /// Sorts what the client saw.
    pub(crate) fn from_sqlx(address: &str, source: sqlx::Error) -> Self {
        if let sqlx::Error::Database(db) = &source {
            let lost = db.code().is_some_and(|code| is_passing_code(&code));
            if db.code().is_some_and(|code| code == CHANGED) {
                return Self::Changed;
            }
            if lost {
                return Self::Unavailable {
                    address: address.to_owned(),
                    source,
                };
            }
            if db.code().is_some_and(|code| is_admission_code(&code)) {
                return Self::Address {
                    address: address.to_owned(),
                    why: db.message().to_owned(),
                };
            }
            let is_duplicate = db.is_unique_violation();
            let by_trigger = db.code().is_some_and(|code| code == SQLITE_CONSTRAINT_TRIGGER);
            if is_duplicate || by_trigger || db.is_foreign_key_violation() || db.is_check_violation() {
                let constraint = db
                    .constraint()
                    .map_or_else(|| db.message().to_owned(), ToOwned::to_owned);
                return Self::Constraint {
                    constraint,
                    is_duplicate,
                    source,
                };
            }
            return Self::Statement(source);
        }
        match source {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable {
                address: address.to_owned(),
                source,
            },
            _ => Self::Statement(source),
        }
    }
}

/// Raised by the functions of ours that a change alone begins and ends with.
const CHANGED: &str = "RF001";
/// A trigger of ours said no; what it said stands for the constraint's name.
const SQLITE_CONSTRAINT_TRIGGER: &str = "1811";
/// The length of a code of PostgreSQL; SQLite's are numbers with fewer digits.
const SQLSTATE_CHARS: usize = 5;

/// PostgreSQL: connection exceptions (08), shutdown and crash (57P), too many connections (53300), serialisation and deadlock (40), a statement,
/// a lock or a transaction that took too long (57014, 55P03, 25P03).
/// SQLite: 5 is busy, 6 is locked; an extended code has these in its low byte.
fn is_passing_code(code: &str) -> bool {
    if code.len() == SQLSTATE_CHARS {
        return code.starts_with("08")
            || code.starts_with("57P")
            || code.starts_with("40")
            || matches!(code, "53300" | "57014" | "55P03" | "25P03");
    }
    code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}

/// PostgreSQL lets nobody in with this user and password (28), or has no such database (3D000).
fn is_admission_code(code: &str) -> bool {
    code.len() == SQLSTATE_CHARS && (code.starts_with("28") || code == "3D000")
}

#[cfg(test)]
mod tests {
    use super::is_passing_code;

    #[test]
    fn what_passes_is_told_from_what_stays() {
        for code in [
            "08006", "57P01", "57P03", "40001", "40P01", "53300", "57014", "55P03", "25P03", "5", "6", "261",
            "262", "517", "773",
        ] {
            assert!(is_passing_code(code), "{code}");
        }
        for code in [
            "23505", "42601", "28P01", "1", "14", "787", "1811", "2067", "00005", "00261",
        ] {
            assert!(!is_passing_code(code), "{code}");
        }
    }
}
