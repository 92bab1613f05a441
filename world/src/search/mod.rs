//! The search for a history that must never be: random settings, random histories with every hazard at once, and a judge that asks only
//! the physical world. A violation is shrunk to a short script.

mod deed;
mod mail;
mod run;
mod setting;
mod shrink;

pub use deed::{Deed, Theme};
pub use run::{Ending, History, Reached, live_through};
pub use setting::Setting;
pub use shrink::shrink;
