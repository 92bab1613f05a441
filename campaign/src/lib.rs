//! The fault campaign of the whole service: real processes, a script of faults that a seed repeats, and a judge that asks only the
//! physical world.
//!
//! The hosts and their devices are simulated in this process, so that their real state is known; everything else is the installed
//! program. [`run`] starts it, lets hosts die and people act, carries out the script, and then waits until every operation has ended
//! and every host is back. A [`Violation`] is a broken invariant.

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
