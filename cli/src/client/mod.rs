//! The HTTP client of the operator's commands.

mod fault;
mod http;
mod place;
mod sse;
pub mod view;

pub use fault::ApiFault;
pub use http::{Answer, Client, Request};
pub use place::Place;
pub use sse::{Frame, Parser};
