//! What Nova asks: its scheduler before it places a server, its API before it evacuates one.

pub(crate) mod evacuate_check;
pub(crate) mod filter;
