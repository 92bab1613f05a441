//! The search for a history that must never be: random settings, random histories with every hazard at once, and a judge that asks only
//! the physical world. A violation is shrunk to a short script.

mod action;
mod mail;
mod run;
mod setting;
mod shrink;

pub use action::{Action, Theme};
pub use mail::{Ear, Letter};
pub use run::{Ending, History, Reached, live_through, release, unplug_and_confirm};
pub use setting::{Setting, SimSource};
pub use shrink::shrink;
