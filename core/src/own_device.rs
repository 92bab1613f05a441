//! Whether a method, filled in for a host, speaks to something that is this host's alone.
//!
//! A device that is filled in alike for two hosts proves of the one what it did to the other. So a plan that is for more than one host may use
//! a method only where something that tells devices apart comes from the host.

use crate::{Driver, FrozenMethod, Host, Method, Parameters, PlanScope, Problems};

/// What a fence agent is told of the manner in which it works; it tells no device from another.
const MANNERS: [&str; 40] = [
    "action",
    "agent",
    "auth",
    "cipher",
    "cmd_prompt",
    "command_prompt",
    "debug",
    "debug_file",
    "delay",
    "disable_timeout",
    "force_on",
    "identity_file",
    "inet4_only",
    "inet6_only",
    "lanplus",
    "login",
    "method",
    "missing_as_off",
    "notls",
    "port_as_ip",
    "privlvl",
    "quiet",
    "retry_on",
    "secure",
    "separator",
    "snmp_auth_prot",
    "snmp_priv_prot",
    "snmp_sec_level",
    "snmp_version",
    "ssh",
    "ssh_options",
    "ssl",
    "ssl_insecure",
    "ssl_secure",
    "stonith_status_sleep",
    "sudo",
    "telnet",
    "username",
    "verbose",
    "verbose_level",
];
/// Endings of such names.
const MANNERS_END: [&str; 4] = ["_timeout", "_wait", "_path", "_script"];

/// The port of IPMI over LAN where a method names none.
const IPMI_PORT: &str = "623";

/// Refuses a method that a plan for several hosts fills in alike for all of them.
pub(crate) fn check_own_device(scope: &PlanScope, method: &Method, host: &Host, problems: &mut Problems) {
    let hosts = match scope {
        PlanScope::Host(_) => return,
        PlanScope::HostType(word) => format!("every host of type {word}"),
        PlanScope::Default => "every host without a plan of its own".to_owned(),
    };
    if is_own(method, host) {
        return;
    }
    problems.add(
        "parameters",
        format!(
            "name the same device for {hosts}: what it proves of one would be taken for a proof of each; in {}, ${{host.name}} or \
             ${{host.id}} is allowed, or a value that host {} gives for itself ({}.KEY=VALUE), or a plan for that host alone",
            telling(method.driver),
            host.name,
            method.name,
        ),
    );
}

fn is_own(method: &Method, host: &Host) -> bool {
    let nothing = Parameters::new();
    let given = host.parameters.get(&method.name).unwrap_or(&nothing);
    let is_given = |name: &str| method.parameters.contains_key(name) || given.contains_key(name);
    // Left out, it is the name that the host has in its cloud.
    if method.driver.place().is_some_and(|[_, name]| !is_given(name)) {
        return true;
    }
    let of_method = method
        .parameters
        .iter()
        .filter(|(name, _)| !given.contains_key(*name))
        .any(|(name, value)| tells_apart(method.driver, name) && names_the_host(value));
    let of_host = given.iter().any(|(name, value)| {
        tells_apart(method.driver, name)
            && (names_the_host(value) || method.parameters.get(name) != Some(value))
    });
    of_method || of_host
}

/// A zone has many hosts.
fn names_the_host(value: &str) -> bool {
    value.contains("${host.name}") || value.contains("${host.id}")
}

/// Whether devices differ by this parameter.
fn tells_apart(driver: Driver, name: &str) -> bool {
    match driver {
        Driver::FenceAgent => !MANNERS.contains(&name) && !MANNERS_END.iter().any(|end| name.ends_with(end)),
        Driver::Redfish => matches!(name, "address" | "system"),
        Driver::Ipmi => matches!(name, "address" | "port"),
        Driver::Cinder | Driver::Neutron => name == "host",
        Driver::Ironic => name == "node",
        Driver::Simulated => name == "device",
    }
}

/// The parameters that tell devices apart, in words.
fn telling(driver: Driver) -> &'static str {
    match driver {
        Driver::FenceAgent => "a parameter that says which device (ip, plug, nodename, ...)",
        Driver::Redfish => "address or system",
        Driver::Ipmi => "address or port",
        Driver::Cinder | Driver::Neutron => "host",
        Driver::Ironic => "node",
        Driver::Simulated => "device",
    }
}

/// What a method that is filled in acts on, and nothing of the manner: two hosts for which this is alike share one device.
#[must_use]
pub fn target_key(method: &FrozenMethod) -> String {
    let mut key = format!("{}\n{}", method.resource.as_str(), method.driver);
    let cloud = method.driver.place().map(|[cloud, _]| cloud);
    let is_told = |name: &str| name == "agent" || cloud == Some(name) || tells_apart(method.driver, name);
    let told = method
        .parameters
        .iter()
        .filter(|(name, value)| is_told(name) && !value.is_empty());
    let mut told: Vec<_> = told
        .map(|(name, value)| (one_name(method.driver, name), value.trim_end_matches('/')))
        .collect();
    if method.driver == Driver::Ipmi && !method.parameters.contains_key("port") {
        told.push(("port", IPMI_PORT));
    }
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

/// Agents know two of their parameters by an older name too.
fn one_name(driver: Driver, name: &str) -> &str {
    match (driver, name) {
        (Driver::FenceAgent, "ipaddr") => "ip",
        (Driver::FenceAgent, "port") => "plug",
        _ => name,
    }
}
