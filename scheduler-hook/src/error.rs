//! Why a question is not answered.

use std::time::Duration;

use ringfence_db::DbError;

/// Why a question is not answered. None of them is an answer, and least of all a yes.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// What was read is too old, or nothing was read yet.
    #[error(
        "the hosts were last read {}; at most {} ms ago is allowed",
        told(*age),
        max_age.as_millis()
    )]
    Stale {
        /// How long ago the last good read began; `None` if there was none.
        age: Option<Duration>,
        /// The bound.
        max_age: Duration,
    },
    /// The database cannot be read.
    #[error("the database cannot be read")]
    Db(#[from] DbError),
    /// The database did not answer in time.
    #[error("the database did not answer within {} ms", within.as_millis())]
    Slow {
        /// The bound.
        within: Duration,
    },
}

fn told(age: Option<Duration>) -> String {
    age.map_or_else(|| "never".to_owned(), |age| format!("{} ms ago", age.as_millis()))
}
