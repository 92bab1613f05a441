//! The HTTP client of the operator's commands.

mod certificate;
mod context;
pub mod explanation;
mod fault;
mod http;
mod patience;
mod place;
mod request;
mod sse;
pub mod view;

pub use context::{Context, Contexts};
pub use fault::ApiFault;
pub use http::{Answer, Client, Stream};
pub use place::{API_FILE, DATABASE, LOCK_FILE, Place, check_url};
pub use request::Request;
pub use sse::{Frame, Parser};
