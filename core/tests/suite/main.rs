//! The rules, as stories on simulated time and as properties over arbitrary histories.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cloud;
mod config;
mod counting;
mod delivering;
mod gates;
mod plans;
mod properties;
mod reach;
mod scenarios;
mod site;
mod watching;
mod world;
