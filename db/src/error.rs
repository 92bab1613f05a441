//! What can go wrong with the database.

/// A fault of the database, or of what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The address cannot be used. The text names no password.
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
            | Self::Statement(_)
            | Self::Constraint { .. }
            | Self::Unreadable { .. }
            | Self::Migrate(_)
            | Self::Schema(_) => false,
        }
    }

    /// Sorts what the client saw.
    pub(crate) fn from_sqlx(address: &str, source: sqlx::Error) -> Self {
        if let sqlx::Error::Database(db) = &source {
            let lost = db.code().is_some_and(|code| is_passing_code(&code));
            if lost {
                return Self::Unavailable { address: address.to_owned(), source };
            }
            let is_duplicate = db.is_unique_violation();
            if is_duplicate || db.is_foreign_key_violation() || db.is_check_violation() {
                let constraint = db.constraint().map_or_else(|| db.message().to_owned(), ToOwned::to_owned);
                return Self::Constraint { constraint, is_duplicate, source };
            }
            return Self::Statement(source);
        }
        match source {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::Unavailable { address: address.to_owned(), source },
            _ => Self::Statement(source),
        }
    }
}

/// PostgreSQL: connection exceptions (08), shutdown and crash (57P), too many connections (53300), serialisation and deadlock (40).
/// SQLite: 5 is busy, 6 is locked.
fn is_passing_code(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code.starts_with("40") || matches!(code, "53300" | "5" | "6")
}
