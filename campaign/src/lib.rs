//! The adversarial search for the whole service: real processes, a script of faults that a seed repeats, and a judge that asks the physical
//! world alone.
//!
//! The hosts and their devices are simulated in this process, which makes their truth known; everything else is the program as it is
//! installed. [`run`] starts it, lets hosts die and people ask for what people ask for, plays the script, and then wants everything
//! to come to an end. [`Violation`] is what must never be.

mod actor;
mod api;
mod broker;
mod clock;
mod error;
mod faults;
mod field;
mod judge;
mod log;
mod monitor;
mod options;
mod peers;
mod plant;
mod process;
mod proxy;
mod report;
mod rng;
mod run;
mod script;
mod settle;
mod truth;

pub use error::CampaignError;
pub use options::{Ground, Options};
pub use report::{Report, Violation};
pub use run::run;
pub use script::{Fault, Script};
