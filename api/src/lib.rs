//! The REST API: OpenStack style, service type `fencing`, paths at the root.
//!
//! Handlers check who asks and what, and leave everything else to `engine`; they read through `db`. Errors become HTTP answers here
//! and nowhere else.

mod application;
mod auth;
mod body;
mod conditional;
mod error;
mod metrics;
mod openapi;
mod paging;
mod request;
mod request_log;
mod routes;
mod tls;
mod tokens;
mod view;

pub use application::{ApiConfig, Application, Reload};
pub use error::{ApiError, StartError};
pub use metrics::MetricsListener;
pub use openapi::openapi_json;
pub use tls::{ServerTls, TlsFiles, Validity};
pub use tokens::{Role, TokenEntry, TokenFile, Tokens, hash_token};
