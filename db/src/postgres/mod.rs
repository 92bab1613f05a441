//! PostgreSQL, which everything but standalone keeps its state in: a server, reached by connections that are kept at hand.

mod connections;
mod transaction;

pub(crate) use connections::{Connections, OpenTransaction};
pub(crate) use transaction::{Optimistic, Pessimistic};
