//! The whole stack for tests: databases, buses, engines, workers, the API, simulated hosts.
//!
//! A test names its [`Ground`]: the database and the bus. Everything else is equal on each.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test, what cannot go on has failed"
)]

mod browser;
mod client;
pub mod clouds_file;
mod database_proxy;
mod fake_nova;
mod ground;
mod hypervisor;
mod keystone;
mod kill;
mod late_nova;
mod leak;
mod logs;
mod monitor;
mod newer_release;
mod numbers;
pub mod pages;
mod patience;
mod picture;
mod policy;
mod process;
mod python;
mod receiver;
mod services;
mod small_server;
mod stack;

pub use browser::{Browser, Complaint, Key, Part, Scheme, page_artefacts, page_tools};
pub use client::{Answer, Client, now};
pub use database_proxy::DatabaseProxy;
pub use fake_nova::FakeNova;
pub use ground::{Ground, Site};
pub use hypervisor::Hypervisor;
pub use keystone::{Cloud, SERVICE_PASSWORD};
pub use kill::DyingBus;
pub use late_nova::{LateNova, Lateness};
pub use leak::assert_secrets_are_nowhere;
pub use monitor::Monitor;
pub use newer_release::NewerRelease;
pub use numbers::Numbers;
pub use patience::{eventually, post_until_taken};
pub use picture::Picture;
pub use policy::policy;
pub use process::{Machine, Run, Service, tell};
pub use python::package_tests;
pub use receiver::{Behaviour, Received, Receiver};
pub use services::{set_up, start_api, start_engine, start_worker};
pub use stack::{Stack, StackOptions, keys, power_plan};
