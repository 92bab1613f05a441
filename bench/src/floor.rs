//! What the peers alone can do: one durable commit, one confirmed publish.

mod commits;
mod publishes;

pub use commits::Commits;
pub use publishes::{Kind, Publishes};
