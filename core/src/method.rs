//! Methods: configured ways to do a task.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::words;
use crate::resolve::check_template;
use crate::{MethodId, Problems, Resource, Timestamp, validate_name};

/// Parameters of a driver, by name.
pub type Parameters = BTreeMap<String, String>;

/// The most parameters that a method may have.
const MAX_PARAMETERS: usize = 64;
/// The longest value of a parameter, in characters.
const MAX_VALUE_CHARS: usize = 1024;

/// The code that speaks to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// Any ClusterLabs fence agent.
    FenceAgent,
    /// DMTF Redfish.
    Redfish,
    /// IPMI over LAN by `ipmitool`.
    Ipmi,
    /// A simulated device.
    Simulated,
}

words!(Driver { FenceAgent => "fence-agent", Redfish => "redfish", Ipmi => "ipmi", Simulated => "simulated" });

/// A parameter that a native driver knows.
struct Known {
    name: &'static str,
    required: bool,
}

const fn required(name: &'static str) -> Known {
    Known { name, required: true }
}

const fn optional(name: &'static str) -> Known {
    Known {
        name,
        required: false,
    }
}

impl Driver {
    /// The resources that the driver can act on.
    #[must_use]
    pub fn resources(self) -> &'static [Resource] {
        match self {
            Self::FenceAgent => &[Resource::Power, Resource::Storage, Resource::Network],
            Self::Redfish | Self::Ipmi => &[Resource::Power],
            Self::Simulated => &[Resource::Power, Resource::Storage, Resource::Network],
        }
    }

    /// The driver's own parameters; a fence agent tells its own by its metadata, which a worker reads.
    fn known(self) -> &'static [Known] {
        const FENCE_AGENT: &[Known] = &[required("agent")];
        const REDFISH: &[Known] = &[
            required("address"),
            required("system"),
            required("username"),
            optional("ca_file"),
            optional("insecure"),
        ];
        const IPMI: &[Known] = &[
            required("address"),
            optional("port"),
            required("username"),
            optional("cipher"),
            optional("privilege"),
        ];
        const SIMULATED: &[Known] = &[required("device")];
        match self {
            Self::FenceAgent => FENCE_AGENT,
            Self::Redfish => REDFISH,
            Self::Ipmi => IPMI,
            Self::Simulated => SIMULATED,
        }
    }

    /// The secrets that the driver takes, and whether it needs them; a fence agent tells its own.
    fn known_secrets(self) -> Option<&'static [Known]> {
        const PASSWORD: &[Known] = &[required("password")];
        match self {
            Self::FenceAgent => None,
            Self::Redfish | Self::Ipmi => Some(PASSWORD),
            Self::Simulated => Some(&[]),
        }
    }
}

/// Where a worker finds a secret. The secret itself is never in the database, in a message or in a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SecretReference {
    /// `env:NAME`: an environment variable of the worker.
    Env(String),
    /// `file:/absolute/path`: a file that the worker can read; one newline at the end is dropped.
    File(String),
}

impl SecretReference {
    /// Reads `env:NAME` or `file:/path`. The error never repeats the text, which may be a secret put in the wrong place.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const HELP: &str = "is not a reference; write env:NAME for an environment variable of the worker (letters, digits and _) \
                            or file:/absolute/path for a file that the worker can read";
        let plain = |c: char| !c.is_control();
        if let Some(name) = text.strip_prefix("env:") {
            let ok = !name.is_empty()
                && name.len() <= 255
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            return if ok {
                Ok(Self::Env(name.to_owned()))
            } else {
                Err(HELP)
            };
        }
        match text.strip_prefix("file:") {
            Some(path)
                if path.starts_with('/') && path.len() <= MAX_VALUE_CHARS && path.chars().all(plain) =>
            {
                Ok(Self::File(path.to_owned()))
            }
            Some(_) | None => Err(HELP),
        }
    }
}

impl TryFrom<String> for SecretReference {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<SecretReference> for String {
    fn from(reference: SecretReference) -> Self {
        reference.to_string()
    }
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

/// How long and how often a method may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MethodTimes {
    /// Seconds that one attempt may take.
    pub attempt_timeout_s: u32,
    /// Seconds that all attempts of one task with this method may take together; no retry begins once 70 % are used
    /// (Pacemaker's rule).
    pub timeout_s: u32,
    /// Retries after the first attempt.
    pub retries: u32,
    /// Milliseconds between two attempts.
    pub pause_ms: u32,
}

impl Default for MethodTimes {
    fn default() -> Self {
        Self {
            attempt_timeout_s: 20,
            timeout_s: 60,
            retries: 2,
            pause_ms: 1000,
        }
    }
}

/// A configured way to do the tasks of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Its id.
    pub id: MethodId,
    /// Its name, unique.
    pub name: String,
    /// What it acts on.
    pub resource: Resource,
    /// The code that speaks to the device.
    pub driver: Driver,
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

/// Whether a parameter of this name would hold a secret. A script or a file that yields one is not a secret itself.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let indirect = ["_script", "_file", "_path"]
        .iter()
        .any(|end| name.ends_with(end));
    let secret = [
        "passw",
        "passphrase",
        "secret",
        "token",
        "community",
        "api_key",
        "apikey",
        "private_key",
    ];
    !indirect && secret.iter().any(|part| name.contains(part))
}

/// Checks everything about a method that can be known without its device and without the worker's machine.
pub fn validate_method(method: &Method) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if let Err(problem) = validate_name("name", &method.name) {
        problems.0.push(problem);
    }
    if let Some(Err(problem)) = method.zone.as_ref().map(|zone| validate_name("zone", zone)) {
        problems.0.push(problem);
    }
    if !method.driver.resources().contains(&method.resource) {
        let allowed: Vec<_> = method.driver.resources().iter().map(|r| r.as_str()).collect();
        problems.add(
            "resource",
            format!(
                "is {}, which driver {} cannot act on; allowed: {}",
                method.resource.as_str(),
                method.driver,
                allowed.join(", ")
            ),
        );
    }
    check_use(method, &mut problems);
    check_secrets(method, &mut problems);
    check_times(method.times, &mut problems);
    problems.into_result()
}

/// Checks the parameters that a driver is given, also once a host's own have been put over them.
pub(crate) fn check_use(method: &Method, problems: &mut Problems) {
    check_parameters("parameters", &method.parameters, problems);
    check_known(method, problems);
    check_driver_values(method, problems);
}

fn is_parameter_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

/// The names of secrets reach an agent's input as those of parameters do.
fn check_secrets(method: &Method, problems: &mut Problems) {
    if method.secrets.len() > MAX_PARAMETERS {
        problems.add(
            "secrets",
            format!(
                "has {} entries; at most {MAX_PARAMETERS} are allowed",
                method.secrets.len()
            ),
        );
    }
    for name in method.secrets.keys() {
        if !is_parameter_name(name) {
            problems.add(
                "secrets",
                format!("has the name {name:?}; 1 to 64 letters, digits, '_' and '-' are allowed"),
            );
        } else if matches!(name.as_str(), "action" | "agent" | "method") {
            problems.add(format!("secrets.{name}"), "must not be given; it is not a secret");
        } else if method.parameters.contains_key(name) && !is_secret_name(name) {
            problems.add(
                format!("secrets.{name}"),
                "is given under \"parameters\" as well; give it once",
            );
        }
    }
}

/// Checks names and values of parameters, wherever they are given: no secret in plain text, nothing that could end a line
/// of an agent's input.
pub(crate) fn check_parameters(field: &str, parameters: &Parameters, problems: &mut Problems) {
    if parameters.len() > MAX_PARAMETERS {
        problems.add(
            field,
            format!(
                "has {} entries; at most {MAX_PARAMETERS} are allowed",
                parameters.len()
            ),
        );
    }
    for (name, value) in parameters {
        let at = format!("{field}.{name}");
        if !is_parameter_name(name) {
            problems.add(
                field,
                format!("has the name {name:?}; 1 to 64 letters, digits, '_' and '-' are allowed"),
            );
        } else if is_secret_name(name) {
            problems.add(
                at,
                format!(
                    "is a secret and must not be given as plain text; put \"{name}\" under \"secrets\" as a reference: \
                     env:NAME or file:/absolute/path, which the worker resolves"
                ),
            );
        } else if let Some(bad) = value.chars().find(|c| c.is_control()) {
            problems.add(
                at,
                format!("holds the control character {bad:?}; one line of plain text is allowed"),
            );
        } else if value.chars().count() > MAX_VALUE_CHARS {
            problems.add(
                at,
                format!(
                    "has {} characters; at most {MAX_VALUE_CHARS} are allowed",
                    value.chars().count()
                ),
            );
        } else if let Err(why) = check_template(value) {
            problems.add(at, why);
        }
    }
}

/// For drivers with a list of parameters of their own: nothing missing, nothing unknown.
fn check_known(method: &Method, problems: &mut Problems) {
    let known = method.driver.known();
    for parameter in known.iter().filter(|p| p.required) {
        if method.parameters.get(parameter.name).is_none_or(String::is_empty) {
            problems.add(
                format!("parameters.{}", parameter.name),
                format!("is missing; driver {} needs it", method.driver),
            );
        }
    }
    let Some(secrets) = method.driver.known_secrets() else {
        return;
    };
    let names = |list: &[Known]| list.iter().map(|k| k.name).collect::<Vec<_>>().join(", ");
    for name in method.parameters.keys().filter(|n| !is_secret_name(n)) {
        if !known.iter().any(|k| k.name == name) {
            problems.add(
                format!("parameters.{name}"),
                format!(
                    "is unknown to driver {}; allowed: {}",
                    method.driver,
                    names(known)
                ),
            );
        }
    }
    for secret in secrets
        .iter()
        .filter(|s| s.required && !method.secrets.contains_key(s.name))
    {
        problems.add(
            format!("secrets.{}", secret.name),
            format!(
                "is missing; driver {} needs it, as env:NAME or file:/absolute/path",
                method.driver
            ),
        );
    }
    for name in method
        .secrets
        .keys()
        .filter(|name| !secrets.iter().any(|s| s.name == *name))
    {
        let allowed = if secrets.is_empty() {
            "none".to_owned()
        } else {
            names(secrets)
        };
        problems.add(
            format!("secrets.{name}"),
            format!("is unknown to driver {}; allowed: {allowed}", method.driver),
        );
    }
}

/// Values that would be dangerous or can only be a mistake.
fn check_driver_values(method: &Method, problems: &mut Problems) {
    let value = |name: &str| method.parameters.get(name).map(String::as_str);
    match method.driver {
        Driver::FenceAgent => {
            let agent_ok = |agent: &str| {
                agent.strip_prefix("fence_").is_some_and(|rest| {
                    !rest.is_empty()
                        && rest
                            .chars()
                            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
                })
            };
            if let Some(agent) = value("agent").filter(|agent| !agent_ok(agent)) {
                problems.add(
                    "parameters.agent",
                    format!("is {agent:?}; the name of an agent such as fence_ipmilan is allowed"),
                );
            }
            if value("action").is_some() {
                problems.add(
                    "parameters.action",
                    "must not be given; the task decides what the agent does",
                );
            }
            if value("method") == Some("cycle") {
                problems.add(
                    "parameters.method",
                    "is \"cycle\", which never verifies that power went off; onoff is allowed",
                );
            }
        }
        Driver::Redfish => {
            if let Some(address) =
                value("address").filter(|a| !a.starts_with("https://") && !a.starts_with("http://"))
            {
                problems.add(
                    "parameters.address",
                    format!("is {address:?}; a URL such as https://bmc.example is allowed"),
                );
            }
            if let Some(system) = value("system").filter(|s| !s.starts_with('/')) {
                problems.add(
                    "parameters.system",
                    format!("is {system:?}; the path of one system such as /redfish/v1/Systems/1 is allowed"),
                );
            }
            if let Some(insecure) = value("insecure").filter(|v| !matches!(*v, "true" | "false")) {
                problems.add(
                    "parameters.insecure",
                    format!("is {insecure:?}; true or false is allowed"),
                );
            }
        }
        Driver::Ipmi => {
            if let Some(port) = value("port").filter(|p| p.parse::<u16>().map_or(true, |port| port == 0)) {
                problems.add("parameters.port", format!("is {port:?}; 1 to 65535 is allowed"));
            }
            if let Some(cipher) = value("cipher").filter(|c| !matches!(*c, "3" | "17")) {
                problems.add("parameters.cipher", format!("is {cipher:?}; 3 or 17 is allowed"));
            }
            if let Some(level) = value("privilege").filter(|p| !matches!(*p, "OPERATOR" | "ADMINISTRATOR")) {
                problems.add(
                    "parameters.privilege",
                    format!("is {level:?}; OPERATOR or ADMINISTRATOR is allowed"),
                );
            }
        }
        Driver::Simulated => {}
    }
}

fn check_times(times: MethodTimes, problems: &mut Problems) {
    let mut range = |field: &str, value: u32, min: u32, max: u32| {
        if !(min..=max).contains(&value) {
            problems.add(
                format!("times.{field}"),
                format!("is {value}; {min} to {max} is allowed"),
            );
        }
    };
    range("attempt_timeout_s", times.attempt_timeout_s, 1, 300);
    range("timeout_s", times.timeout_s, times.attempt_timeout_s, 900);
    range("retries", times.retries, 0, 10);
    range("pause_ms", times.pause_ms, 0, 60_000);
}
