//! What matters of a state, written down as bytes: two states with equal bytes have one future.
//!
//! Times are written as seen from now, ids by the order in which they come up, generations as seen from the host's. What no decision and
//! no judge looks at is left out: words for people, counters of changes, when something was made. Every struct is taken apart by name
//! without a rest, so that a field which is new does not compile here before it is said whether it matters.

mod host;
mod life;
mod operation;
mod packer;
mod site;

pub use life::{pack, pack_host};
pub(crate) use packer::Packer;
