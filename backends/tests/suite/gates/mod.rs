//! The gates in a cluster: what the policies hold, and what they let through.

mod held;
mod let_through;
pub mod policies;
pub mod requests;
mod words;
