//! The REST API: OpenStack style, service type `fencing`, paths at the root.
//!
//! Handlers check who asks and what, and leave everything else to `engine`; they read through `db`. Errors become HTTP answers here
//! and nowhere else.

mod application;
mod auth;
mod authenticators;
mod body;
mod call;
mod common_responses;
mod conditional;
mod connections;
mod error;
mod filter;
mod hook_feed;
mod idempotency;
mod identity;
mod keystone;
mod limits;
mod listing;
mod metrics;
mod moment;
mod openapi;
mod paging;
mod request;
mod request_log;
mod role;
mod routes;
mod session;
mod state;
mod streams;
mod tickets;
mod tls;
mod tokens;
mod view;
mod waiting;
mod watch;
mod whole_numbers;

pub use application::{ApiConfig, Application, Reload};
pub use error::{ApiError, StartError};
pub use keystone::{KeystoneConfig, KeystoneError, Password, RoleNames, Scope, check_keystone};
pub use limits::RateLimits;
pub use metrics::MetricsListener;
pub use openapi::openapi_json;
pub use role::Role;
pub use streams::StreamLimits;
pub use tls::{ServerTls, TlsFiles, Validity};
pub use tokens::{TOKEN_PREFIX, TokenEntry, TokenFile, Tokens, hash_token};
pub use waiting::serve_waiting;
