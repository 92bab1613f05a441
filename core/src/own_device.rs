//! Whether a method, resolved for a host, acts on a device of this host alone.
//!
//! A device that two hosts share would prove of one host what it did to the other. So a plan for several hosts may use a method only where a
//! parameter that identifies the device comes from the host.

use crate::driver::{Catalogue, Declaration, Role, value_of};
use crate::{FrozenMethod, Host, Method, Parameters, PlanScope, Problems};

/// Refuses a method that a plan for several hosts fills in alike for all of them.
pub(crate) fn check_own_device(
    declared: &Declaration,
    scope: &PlanScope,
    method: &Method,
    host: &Host,
    problems: &mut Problems,
) {
    let hosts = match scope {
        PlanScope::Host(_) => return,
        PlanScope::HostType(word) => format!("every host of type {word}"),
        PlanScope::Default => "every host without a plan of its own".to_owned(),
    };
    if is_own(declared, method, host) {
        return;
    }
    problems.add(
        "parameters",
        format!(
            "name one device for {hosts}: its proof for one host would count for each; in {}, ${{host.name}} or \
             ${{host.id}} is allowed, or a value that host {} gives for itself ({}.KEY=VALUE), or a plan for that host alone",
            declared.telling(),
            host.name,
            method.name,
        ),
    );
}

fn is_own(declared: &Declaration, method: &Method, host: &Host) -> bool {
    let nothing = Parameters::new();
    let own = host.parameters.get(&method.name).unwrap_or(&nothing);
    let is_given = |name: &str| method.parameters.contains_key(name) || own.contains_key(name);
    // Left out, it is the name that the host has in its cloud.
    if declared.place.is_some_and(|place| !is_given(place.host)) {
        return true;
    }
    let tells_apart = |name: &str| declared.role(name) == Role::TellsApart;
    let of_method = method
        .parameters
        .iter()
        .filter(|(name, _)| !own.contains_key(*name))
        .any(|(name, value)| tells_apart(name) && names_the_host(value));
    let of_host = own.iter().any(|(name, value)| {
        tells_apart(name) && (names_the_host(value) || method.parameters.get(name) != Some(value))
    });
    of_method || of_host
}

/// A zone has many hosts.
fn names_the_host(value: &str) -> bool {
    value.contains("${host.name}") || value.contains("${host.id}")
}

/// What a method that is filled in acts on, and nothing of the manner: two hosts for which this is alike share one device.
#[must_use]
pub fn target_key(drivers: &Catalogue, method: &FrozenMethod) -> String {
    let mut key = format!("{}\n{}", method.resource.as_str(), method.driver);
    let Some(declared) = drivers.get(&method.driver) else {
        return key;
    };
    let newest = |name| {
        declared
            .others
            .as_ref()
            .map_or(name, |others| (others.newest_name)(name))
    };
    let is_told = |name: &str| declared.role(name) != Role::Manner;
    let told = method
        .parameters
        .iter()
        .filter(|(name, value)| is_told(name) && !value.is_empty());
    let told = told.map(|(name, value)| (newest(name.as_str()), value.trim_end_matches('/')));
    let left_out = declared
        .parameters
        .iter()
        .filter(|parameter| is_told(parameter.name));
    let defaults = left_out.filter_map(|parameter| {
        let value = parameter.default?;
        value_of(&method.parameters, parameter.name)
            .is_none()
            .then_some((parameter.name, value))
    });
    let mut told: Vec<_> = told.chain(defaults).collect();
    told.sort_unstable();
    // No value holds the end of a line.
    for (name, value) in told {
        key.push('\n');
        key.push_str(name);
        key.push('=');
        key.push_str(value);
    }
    key
}
