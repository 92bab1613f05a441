//! Every history of some small worlds, with the production rules in the middle and the judge of `ringfence-world` beside them.
//!
//! A [`Configuration`] is a setting and how often each kind of thing may happen in it ([`Chances`]). From its beginning every order of these
//! things is lived through: a message or a worker that is lost is one to which nothing happens any more, and time moves to the moments at
//! which something changes. Two states are one if as much is so in both, with times seen from now and ids by their order ([`pack`]): of
//! such two only the first is followed. What is followed is never a packed state, so that every trace is one of the real rules.

mod action;
mod chances;
mod configuration;
mod ends;
mod error;
mod goal;
mod life;
mod model;
mod moments;
pub mod pack;
mod run;
mod worlds;
mod wrong;

pub use action::Action;
pub use chances::{Chance, Chances};
pub use configuration::Configuration;
pub use error::ModelCheckError;
pub use goal::Goal;
pub use life::Life;
pub use model::{Model, State};
pub use run::{Found, Limits, Order, run, trace};
pub use worlds::{all, by_name, small};
pub use wrong::Wrong;
