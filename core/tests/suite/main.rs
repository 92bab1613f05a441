//! The rules: scripts on simulated time, and properties over arbitrary histories.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod boot_watching;
mod ceph;
mod config;
mod counting;
mod delivering;
mod departing;
mod explaining;
mod gates;
mod heartbeats;
mod properties;
mod queries;
mod reach;
mod scenarios;
mod watching;
