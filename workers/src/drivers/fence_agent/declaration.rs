//! What is known of the driver without any agent's own metadata.

use std::sync::Arc;

use ringfence_core::{Declaration, Others, Parameter, Parameters, Resource, value_of};

use super::{FenceAgent, rules};
use crate::drivers::Entry;

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

pub(crate) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "fence-agent",
        about: "any ClusterLabs fence agent that is installed on the worker",
        resources: &[Resource::Power, Resource::Storage, Resource::Network],
        parameters: &[Parameter::required("agent", "its name, such as fence_apc_snmp")
            .says_where()
            .allowing("the name of an agent such as fence_ipmilan is allowed", is_agent)],
        secrets: &[],
        others: Some(Others {
            about: "as the metadata of the agent names them",
            refusal: rules::refusal,
            tells_apart: |name| {
                !MANNERS.contains(&name) && !MANNERS_END.iter().any(|end| name.ends_with(end))
            },
            telling: "a parameter that says which device (ip, plug, nodename, ...)",
            newest_name: |name| match name {
                "ipaddr" => "ip",
                "port" => "plug",
                other => other,
            },
        }),
        place: None,
        lingers_s: 30,
        device,
        can_prove: |_| true,
    },
    make: |settings| {
        let clock = Arc::clone(&settings.clock);
        Arc::new(FenceAgent::new(settings.agent_path.clone(), clock))
    },
};

fn is_agent(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.strip_prefix("fence_")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(allowed))
}

/// An agent for a cloud's API has no address, and takes many commands at once.
fn device(parameters: &Parameters) -> Option<String> {
    let value = |name: &str| value_of(parameters, name);
    let agent = value("agent")?;
    let address = ["ip", "ipaddr", "status_file"].into_iter().find_map(value)?;
    let port = value("ipport").unwrap_or_default();
    Some(format!("{agent}/{address}:{port}"))
}
