//! The search for a history that must never be: random settings, random histories with every hazard at once, and a judge that asks only
//! the physical world. A violation is shrunk to a short script.

mod action;
mod mail;
mod run;
mod setting;
mod shrink;
mod word;

pub use action::{Action, Theme};
pub use mail::{Ear, Letter};
pub use run::{Ending, History, Reached, former_takes, live_through, release};
pub use setting::{Setting, SimSource};
pub use shrink::shrink;
pub use word::{Word, unplug_and_confirm};
