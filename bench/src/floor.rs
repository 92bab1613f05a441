//! The times of the peers alone: one durable commit, one confirmed publish, one answer over HTTP.

mod bodies;
mod commits;
mod publishes;

pub use bodies::Bodies;
pub use commits::Commits;
pub use publishes::{Kind, Publishes};
