//! Values of parameters that would be dangerous or can only be a mistake, driver by driver.

use super::{Driver, Method};
use crate::Problems;

/// Refuses them.
pub(super) fn check_values(method: &Method, problems: &mut Problems) {
    match method.driver {
        Driver::FenceAgent => check_fence_agent(method, problems),
        Driver::Redfish => check_redfish(method, problems),
        Driver::Ipmi => check_ipmi(method, problems),
        Driver::Cinder => check_cinder(method, problems),
        Driver::Neutron => check_flag(method, "trusted", problems),
        Driver::Ironic | Driver::Simulated => {}
    }
}

fn value<'a>(method: &'a Method, name: &str) -> Option<&'a str> {
    method.parameters.get(name).map(String::as_str)
}

fn is_agent(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.strip_prefix("fence_")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(allowed))
}

fn check_fence_agent(method: &Method, problems: &mut Problems) {
    if let Some(agent) = value(method, "agent").filter(|agent| !is_agent(agent)) {
        problems.add(
            "parameters.agent",
            format!("is {agent:?}; the name of an agent such as fence_ipmilan is allowed"),
        );
    }
    if value(method, "action").is_some() {
        problems.add(
            "parameters.action",
            "must not be given; the task decides what the agent does",
        );
    }
    if value(method, "method") == Some("cycle") {
        problems.add(
            "parameters.method",
            "is \"cycle\", which never verifies that power went off; onoff is allowed",
        );
    }
}

fn check_redfish(method: &Method, problems: &mut Problems) {
    let is_url = |text: &&str| text.starts_with("https://") || text.starts_with("http://");
    if let Some(address) = value(method, "address").filter(|text| !is_url(text)) {
        problems.add(
            "parameters.address",
            format!("is {address:?}; a URL such as https://bmc.example is allowed"),
        );
    }
    if let Some(system) = value(method, "system").filter(|path| !path.starts_with('/')) {
        problems.add(
            "parameters.system",
            format!("is {system:?}; the path of one system such as /redfish/v1/Systems/1 is allowed"),
        );
    }
    check_flag(method, "insecure", problems);
}

fn check_flag(method: &Method, name: &str, problems: &mut Problems) {
    if let Some(flag) = value(method, name).filter(|v| !matches!(*v, "true" | "false")) {
        problems.add(
            format!("parameters.{name}"),
            format!("is {flag:?}; true or false is allowed"),
        );
    }
}

/// A backend's name is what stands between `@` and `#` in the host of a volume.
fn check_cinder(method: &Method, problems: &mut Problems) {
    check_flag(method, "local_disks", problems);
    let Some(list) = value(method, "trusted_backends") else {
        return;
    };
    let is_odd =
        |name: &str| name.is_empty() || name.contains(['@', '#', '*']) || name.contains(char::is_whitespace);
    if let Some(odd) = list.split(',').map(str::trim).find(|name| is_odd(name)) {
        problems.add(
            "parameters.trusted_backends",
            format!(
                "holds {odd:?}; names of backends with commas between them are allowed, such as lvm-1,array-2: what stands between \
                 '@' and '#' in os-vol-host-attr:host of a volume"
            ),
        );
    }
}

fn check_ipmi(method: &Method, problems: &mut Problems) {
    let is_port = |text: &&str| text.parse::<u16>().is_ok_and(|port| port != 0);
    if let Some(port) = value(method, "port").filter(|text| !is_port(text)) {
        problems.add("parameters.port", format!("is {port:?}; 1 to 65535 is allowed"));
    }
    if let Some(cipher) = value(method, "cipher").filter(|c| !matches!(*c, "3" | "17")) {
        problems.add("parameters.cipher", format!("is {cipher:?}; 3 or 17 is allowed"));
    }
    if let Some(level) = value(method, "privilege").filter(|p| !matches!(*p, "OPERATOR" | "ADMINISTRATOR")) {
        problems.add(
            "parameters.privilege",
            format!("is {level:?}; OPERATOR or ADMINISTRATOR is allowed"),
        );
    }
}
