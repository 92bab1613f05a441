//! The HTTP client of the operator's commands.

mod fault;
mod http;
mod place;
mod request;
mod sse;
pub mod view;

pub use fault::ApiFault;
pub use http::{Answer, Client};
pub use place::Place;
pub use request::Request;
pub use sse::{Frame, Parser};
