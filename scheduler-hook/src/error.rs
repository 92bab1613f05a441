//! Why a question cannot be answered.

use std::time::Duration;

use ringfence_db::DbError;

/// Why a question cannot be answered. No caller may take an error for an answer, least of all for a yes.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The last read is too old, or there was none.
    #[error(
        "the hosts were last read {}; at most {} ms ago is allowed",
        told(*age),
        max_age.as_millis()
    )]
    Stale {
        /// How long ago the last successful read began; `None` if there was none.
        age: Option<Duration>,
        /// The greatest age that is allowed.
        max_age: Duration,
    },
    /// The database cannot be read.
    #[error("the database cannot be read")]
    Db(#[from] DbError),
    /// Another process may lead, so that the database may be out of date.
    #[error("the answer cannot be confirmed: {0}")]
    Lead(String),
    /// A cluster does not tell what may go of one of its nodes.
    #[error("the gate object cannot be read, which names what may go: {0}")]
    Unnamed(String),
    /// The database did not answer in time.
    #[error("the database did not answer within {} ms", within.as_millis())]
    Slow {
        /// The limit.
        within: Duration,
    },
}

fn told(age: Option<Duration>) -> String {
    age.map_or_else(|| "never".to_owned(), |age| format!("{} ms ago", age.as_millis()))
}
