//! Waits until a cloud can be used.

use std::error::Error;

use serde_json::Value;

use crate::cloud::wait::POLL;
use crate::cloud::{Api, Cloud, User};
use crate::error::LabError;
use crate::openstack::daemon::Daemon;

/// Waits until all services answer, and those without an API have reported a heartbeat.
pub(crate) fn wait(daemons: &mut [Daemon], cloud: &Cloud) -> Result<(), LabError> {
    for daemon in daemons.iter_mut() {
        daemon.wait_answer()?;
    }
    for daemon in daemons {
        let name = daemon.name();
        let mut seen = String::new();
        let waited = daemon.wait(|| match has_shown_itself(name, cloud) {
            Ok(()) => true,
            Err(instead) => {
                seen = instead;
                std::thread::sleep(POLL);
                false
            }
        });
        waited.map_err(|error| with_what_was_seen(error, &seen))?;
    }
    Ok(())
}

/// Adds what other services show of the one that is not ready: its own log may show no error.
fn with_what_was_seen(error: LabError, seen: &str) -> LabError {
    match error {
        LabError::NotReady {
            peer,
            seconds,
            log,
            tail,
        } => LabError::NotReady {
            peer,
            seconds,
            log,
            tail: format!("{tail}\nlast seen in the APIs: {seen}"),
        },
        other => other,
    }
}

/// Whether the service has reported itself, or what its API shows instead.
fn has_shown_itself(name: &str, cloud: &Cloud) -> Result<(), String> {
    match name {
        "keystone" => match cloud.token(User::Admin) {
            Ok(_) => Ok(()),
            Err(error) => Err(with_source(&error)),
        },
        "nova-conductor" | "nova-scheduler" => reports(cloud, Api::Compute, name),
        "cinder-scheduler" | "cinder-volume" => reports(cloud, Api::Volume, name),
        "ironic" => has_drivers(cloud),
        _ => Ok(()),
    }
}

fn reports(cloud: &Cloud, api: Api, binary: &str) -> Result<(), String> {
    let services = cloud.get(api, &format!("/os-services?binary={binary}"));
    shows(services, "services", |service| service["state"] == "up")
}

fn has_drivers(cloud: &Cloud) -> Result<(), String> {
    shows(cloud.get(Api::Baremetal, "/v1/drivers"), "drivers", |_| true)
}

fn shows(answer: Result<Value, LabError>, list: &str, is_it: impl Fn(&Value) -> bool) -> Result<(), String> {
    let answer = answer.map_err(|error| with_source(&error))?;
    if some(&answer[list], is_it) {
        Ok(())
    } else {
        Err(answer.to_string())
    }
}

fn with_source(error: &LabError) -> String {
    let source = error.source().map(|source| format!(": {source}"));
    format!("{error}{}", source.unwrap_or_default())
}

fn some(list: &Value, is_it: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|all| all.iter().any(is_it))
}
