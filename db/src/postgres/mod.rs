//! PostgreSQL, which everything but standalone keeps its state in: a server, reached by connections that are kept at hand.

mod connections;

pub(crate) use connections::{Connections, Open};
