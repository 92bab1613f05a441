//! `NodeFence`: the fence of one node. Made by hand it asks for one; Ringfence makes it for a fence that was asked for elsewhere.

mod automaton;
mod awaiting;
mod failures;
mod object;
mod own;
mod releasing;
mod requesting;
mod serving;
mod status;
mod suspending;
mod wishes;
mod word;

pub(crate) use awaiting::Awaiting;
pub(crate) use object::{api, kind};
pub(crate) use serving::serve;
pub(crate) use wishes::wants_fenced;
