//! Why the API cannot start, and why a request was not served.

mod answer;
mod head;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringfence_core::Problems;
use ringfence_db::DbError;
use ringfence_engine::EngineError;
use ringfence_scheduler_hook::HookError;

pub(crate) use self::answer::{ErrorBody, ErrorList};
pub(crate) use self::head::engine_head;
use crate::keystone::KeystoneError;
use crate::role::Role;

/// Why the API cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// What was asked for.
        address: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The tokens cannot be read.
    #[error("the token file {} cannot be read: {why}", path.display())]
    TokenFile {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What speaks to Keystone cannot be set up.
    #[error("what speaks to Keystone cannot be set up; see keystone.ca_file")]
    Keystone {
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// Keystone cannot be asked about tokens.
    #[error("Keystone cannot be asked about tokens")]
    KeystoneUnusable {
        /// Why.
        #[source]
        source: KeystoneError,
    },
    /// What speaks to the simulated hosts cannot be set up.
    #[error("what speaks to the simulated hosts cannot be set up")]
    Demo {
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("{key}: {} {why}", path.display())]
    Tls {
        /// The key of the configuration.
        key: &'static str,
        /// The file that it names.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No token, or one that does not work.
    #[error("{why}")]
    Unauthorized {
        /// What is wrong with it.
        why: &'static str,
        /// Where tokens come from, if from Keystone.
        keystone: Option<String>,
    },
    /// A browser asks with its session, and not for a page of this service.
    #[error("the request was made by a page of another site; open /dashboard of this service")]
    OtherPage,
    /// The token works and allows nothing here.
    #[error("{0}")]
    NotEntitled(Arc<str>),
    /// Keystone cannot say whether the token works.
    #[error("it cannot be found out whether the token is valid: {0}")]
    Keystone(#[from] Arc<KeystoneError>),
    /// The caller asks too often.
    #[error("there were too many requests of this caller; try again in {} s", seconds(*wait))]
    TooManyRequests {
        /// Until the next one is served.
        wait: Duration,
    },
    /// More event streams than are allowed.
    #[error("{whose} {allowed} event streams open, which is as many as are allowed; close one")]
    TooManyStreams {
        /// Who has them open.
        whose: &'static str,
        /// How many are allowed.
        allowed: u32,
    },
    /// Too many tokens from the caller's address did not work.
    #[error("too many tokens from this address did not work; try again in {} s", seconds(*wait))]
    TooManyFailures {
        /// Until the next one is looked at.
        wait: Duration,
    },
    /// The role does not allow it.
    #[error("role {} does not allow this; {} or more is needed", has.as_str(), needs.as_str())]
    Forbidden {
        /// What the caller has.
        has: Role,
        /// What it takes.
        needs: Role,
    },
    /// There is no such path.
    #[error("there is nothing at {0}")]
    NoSuchPath(String),
    /// The path does not take this method.
    #[error("{method} is not allowed here; what is allowed: {allowed}")]
    MethodNotAllowed {
        /// The method.
        method: String,
        /// Those that the path takes, with commas between them.
        allowed: String,
    },
    /// The request is not well-formed.
    #[error("{0}")]
    Malformed(Problems),
    /// The body is too large.
    #[error("the body is larger than {allowed} bytes")]
    TooLarge {
        /// The bound.
        allowed: usize,
    },
    /// The body did not come in time.
    #[error("the body had not come whole after {allowed_s} s")]
    BodyTooSlow {
        /// The bound.
        allowed_s: u64,
    },
    /// The body is not JSON.
    #[error("the body has content type {0:?}; application/json is allowed")]
    NotJson(String),
    /// The body is compressed.
    #[error("the body has the content encoding {0:?}; it is taken as it is, without one")]
    Encoded(String),
    /// The version of the API that was asked for is not there.
    #[error("{0}")]
    Version(String),
    /// The key came with another request before.
    #[error(
        "Idempotency-Key: {0:?} came with another method, path or body before; a repeat of that very request, or a key that \
        was not used for a day, is allowed"
    )]
    KeyReused(String),
    /// The request that the key came with is being carried out.
    #[error("Idempotency-Key: the request with {0:?} is still being carried out; ask again")]
    KeyRunning(String),
    /// The process waits for the lead, or takes the records over.
    #[error("this Ringfence does not lead yet; ask the one that is ready")]
    Waiting,
    /// The scheduler hook cannot answer.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        Self::Engine(EngineError::Db(error))
    }
}

impl ApiError {
    /// One thing wrong with the request.
    pub(crate) fn bad(field: &str, detail: impl Into<String>) -> Self {
        let mut problems = Problems::default();
        problems.add(field, detail);
        Self::Malformed(problems)
    }

    /// What was shown does not work, wherever tokens come from.
    pub(crate) fn unauthorized(why: &'static str) -> Self {
        Self::Unauthorized { why, keystone: None }
    }

    /// There is no such thing.
    pub(crate) fn not_found(kind: &'static str, id: &str) -> Self {
        Self::Engine(EngineError::not_found(kind, id))
    }
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + 1
}
