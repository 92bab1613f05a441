//! The rules, as stories on simulated time and as properties over arbitrary histories.

mod plans;
mod scenarios;
mod site;
mod world;
