//! What would happen to hosts: the engine itself on a copy of the state, on simulated time, with workers and observers that are simulated too.
//!
//! No rule is written down a second time here, and nothing is counted: hosts, permits and groups are in a database of their own, which the engine reads and writes as it
//! does elsewhere. Only what comes from outside of Ringfence is assumed, and is told with the outcome ([`Assumptions`]).

mod assumptions;
mod bus;
mod ending;
mod error;
mod observers;
mod outcome;
mod own_engine;
mod past;
mod periods;
mod run;
mod site;
mod story;
mod unchanged;
mod workers;

pub use assumptions::Assumptions;
pub use error::SimulationError;
pub use outcome::{End, Entry, HostOutcome, Outcome, Word};
pub use periods::{Period, Wait};
pub use run::simulate;
pub use site::{HostFacts, Seen, Site};
pub use story::{Happening, MAX_HAPPENINGS, MAX_LASTS, Story, What};
