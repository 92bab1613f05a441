//! Methods: configured ways to do a task.

mod declared;
mod parameters;
mod secrets;
mod times;

use std::collections::BTreeMap;

pub(crate) use self::parameters::check_parameters;
pub use self::parameters::{Parameters, is_secret_name};
pub use self::secrets::SecretReference;
pub use self::times::MethodTimes;
use crate::driver::{Catalogue, Declaration};
use crate::{KDUMP, MethodId, Problems, Resource, Timestamp, validate_name, validate_zone};

/// A configured way to do the tasks of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its id.
    pub id: MethodId,
    /// Its name, unique.
    pub name: String,
    /// What it acts on.
    pub resource: Resource,
    /// The name of the driver that speaks to the device.
    pub driver: String,
    /// The driver's parameters. `${host.name}`, `${host.id}` and `${host.zone}` stand for the host's own.
    pub parameters: Parameters,
    /// The driver's secrets, as references.
    pub secrets: BTreeMap<String, SecretReference>,
    /// The zone whose workers reach the device; the host's own if absent.
    pub zone: Option<String>,
    /// Limits.
    pub times: MethodTimes,
    /// Counts its changes; the API's entity tag.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Checks everything about a method that can be known without its device and without the worker's machine.
pub fn validate_method(drivers: &Catalogue, method: &Method) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let Err(problem) = validate_name("name", &method.name) {
        problems.0.push(problem);
    }
    if method.name == KDUMP {
        problems.add(
            "name",
            "is kdump, under which hosts name their addresses; any other name is allowed",
        );
    }
    if let Some(Err(problem)) = method.zone.as_ref().map(|zone| validate_zone("zone", zone)) {
        problems.0.push(problem);
    }
    if method.resource == Resource::Workloads {
        problems.add(
            "resource",
            "is workloads, for which no method is needed: a host says by its backend and its cloud where its workloads are",
        );
    }
    match drivers.of(method) {
        Ok(declared) => {
            declared::check_resource(declared, method.resource, &mut problems);
            check_use(declared, method, false, &mut problems);
        }
        Err(problem) => problems.0.push(problem),
    }
    secrets::check_secrets(method, &mut problems);
    times::check_times(method.times, &mut problems);
    problems.into_result()
}

/// Checks the parameters that a driver is given, also once those of a host have been put over them (`of_host`).
pub(crate) fn check_use(declared: &Declaration, method: &Method, of_host: bool, problems: &mut Problems) {
    check_parameters("parameters", &method.parameters, problems);
    declared::check_declared(declared, method, of_host, problems);
}
