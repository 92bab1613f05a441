//! SQLite, which standalone keeps everything in: a library in this process that waits for the disk, and so has threads of its own.

mod connection;
mod connections;
mod migrations;
mod row;
mod transaction;

pub(crate) use connection::{Connection, Keeps};
pub(crate) use connections::{Connections, OpenTransaction};
pub(crate) use migrations::carry_out;
pub use row::SqliteRow;
pub(crate) use transaction::Transaction;
