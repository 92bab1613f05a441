//! The worker with real devices, and with a bus whose engine is simulated by the test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod aws;
mod ceph;
mod declared;
mod engine;
mod fence_agents;
mod heartbeats;
mod http;
mod ipmi;
mod kdump;
mod kubernetes;
mod linstor;
mod metadata;
mod peers;
mod queries;
mod questions;
mod reach;
mod redfish;
mod redfish_odd;
mod runtime;
mod scripted;
mod simulated;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringfence_core::{FrozenMethod, MethodId, MethodTimes, ObservedState, Outcome, Resource, Timestamp};
use ringfence_workers::{Clock, DriverSettings, Drivers, Report, Secrets, catalogue};
use uuid::Uuid;

/// A clock that stands still: no test depends on the time of day.
fn clock() -> Clock {
    Arc::new(|| Timestamp::UNIX_EPOCH)
}

fn drivers() -> Drivers {
    Drivers::new(&DriverSettings::new(clock()))
}

fn method(driver: &str, resource: Resource, parameters: &[(&str, &str)]) -> FrozenMethod {
    let parameters: BTreeMap<_, _> = parameters
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let declared = catalogue();
    let declared = declared.get(driver).unwrap();
    FrozenMethod {
        id: MethodId(Uuid::from_u128(7)),
        name: "m1".to_owned(),
        resource,
        driver: driver.to_owned(),
        device: (declared.device)(&parameters),
        service_of: None,
        can_prove: (declared.can_prove)(&parameters),
        parameters,
        secrets: BTreeMap::new(),
        zone: "z1".to_owned(),
        times: MethodTimes::default(),
    }
}

fn no_secrets() -> Secrets {
    Secrets::default()
}

fn password(value: &str) -> Secrets {
    [("password", value)].into_iter().collect()
}

fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

#[track_caller]
fn assert_confirmed(report: &Report, state: ObservedState) {
    assert_eq!(report.outcome, Outcome::Confirmed, "{report:?}");
    assert_eq!(seen(report), Some(state), "{report:?}");
}

#[track_caller]
fn assert_outcome(report: &Report, outcome: Outcome, words: &str) {
    assert_eq!(report.outcome, outcome, "{report:?}");
    assert!(report.detail.contains(words), "{report:?}");
}

fn seen(report: &Report) -> Option<ObservedState> {
    report.observation.as_ref().map(|o| o.state)
}
