//! When a cloud can be used.

use serde_json::Value;

use crate::cloud::wait::POLL;
use crate::cloud::{Api, Cloud};
use crate::error::LabError;
use crate::openstack::daemon::Daemon;

/// Waits until all answer, and those that only the others talk to have shown a heartbeat.
pub(crate) fn wait(daemons: &mut [Daemon], cloud: &Cloud) -> Result<(), LabError> {
    for daemon in daemons.iter_mut() {
        daemon.wait_open()?;
    }
    for daemon in daemons {
        let name = daemon.name();
        daemon.wait(|| {
            let has = has_shown_itself(name, cloud);
            if !has {
                std::thread::sleep(POLL);
            }
            has
        })?;
    }
    Ok(())
}

fn has_shown_itself(name: &str, cloud: &Cloud) -> bool {
    match name {
        "nova-conductor" | "nova-scheduler" => reports(cloud, Api::Compute, name),
        "cinder-scheduler" | "cinder-volume" => reports(cloud, Api::Volume, name),
        "ironic" => has_drivers(cloud),
        _ => true,
    }
}

fn reports(cloud: &Cloud, api: Api, binary: &str) -> bool {
    let services = cloud.get(api, &format!("/os-services?binary={binary}"));
    services.is_ok_and(|answer| some(&answer["services"], |service| service["state"] == "up"))
}

fn has_drivers(cloud: &Cloud) -> bool {
    let drivers = cloud.get(Api::Baremetal, "/v1/drivers");
    drivers.is_ok_and(|answer| some(&answer["drivers"], |_| true))
}

fn some(list: &Value, is_it: impl Fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|all| all.iter().any(is_it))
}
