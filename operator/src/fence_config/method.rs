//! One method, as ConfigMaps declare it.

use std::collections::BTreeMap;

use ringfence_core::{
    Catalogue, Declaration, MethodTimes, Parameters, Problems, Resource, SecretReference, is_secret_name,
};
use ringfence_engine::MethodDraft;

use super::names::TEMPLATE;
use super::properties::{self, Properties};
use super::sources::Sources;

/// The most templates that stand behind one method.
const MAX_TEMPLATES: usize = 8;
/// The driver of fence agents.
const FENCE_AGENT: &str = "fence-agent";
/// Fence agents that cut hosts off from a fabric, and what that carries.
const FABRICS: [(&str, Resource); 4] = [
    ("fence_brocade", Resource::Storage),
    ("fence_cisco_mds", Resource::Storage),
    ("fence_sanbox2", Resource::Storage),
    ("fence_ifmib", Resource::Network),
];
/// Levels of a task.
const LEVELS: std::ops::RangeInclusive<u8> = 1..=9;

/// What a method is named for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Off,
    On,
    /// Off, then on.
    Reboot,
}

/// One method, as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Method {
    /// What is done with it; `None` if it does not say.
    pub action: Option<Action>,
    /// Methods of the lowest level are tried first; those of one level are used together.
    pub level: u8,
    /// What it acts on, as far as it is known.
    pub resource: Option<Resource>,
    pub driver: String,
    pub parameters: Parameters,
    pub secrets: BTreeMap<String, SecretReference>,
    pub zone: Option<String>,
    pub times: MethodTimes,
}

impl Method {
    /// Whether both act on one device in one manner: what one of them takes, the other one gives back.
    pub fn is_of_the_device_of(&self, other: &Self) -> bool {
        (&self.driver, &self.parameters, &self.secrets) == (&other.driver, &other.parameters, &other.secrets)
    }

    /// As the engine takes it.
    pub fn draft(self, name: String, resource: Resource) -> MethodDraft {
        MethodDraft {
            name,
            resource,
            driver: self.driver,
            parameters: self.parameters,
            secrets: self.secrets,
            zone: self.zone,
            times: self.times,
        }
    }
}

/// Where methods are read.
pub(super) struct Reader<'a> {
    pub cluster: &'a str,
    pub namespace: &'a str,
    pub drivers: &'a Catalogue,
    pub sources: &'a Sources,
}

impl Reader<'_> {
    /// Reads a method; `None` if something is wrong with it.
    pub fn read(&self, at: &str, text: &str, problems: &mut Problems) -> Option<Method> {
        let before = problems.0.len();
        let own = properties::read(at, text, problems);
        let all = self.with_templates(at, own, problems);
        let method = self.method(at, all, problems);
        method.filter(|_| problems.0.len() == before)
    }

    /// Tells what is wrong with a template by itself, and with those that it names.
    pub fn check_template(&self, at: &str, text: &str, problems: &mut Problems) {
        let own = properties::read(at, text, problems);
        let all = self.with_templates(at, own, problems);
        // What a template does not say, its methods may.
        for (key, value) in all {
            let is_reference = SecretReference::parse(&value).is_ok() || value.starts_with("secret:");
            if is_secret_name(&key) && !is_reference {
                problems.add(format!("{at}: {key}"), self.no_plain_secret(&key));
            }
        }
    }

    /// The values of the templates, below the method's own.
    fn with_templates(&self, at: &str, mut all: Properties, problems: &mut Problems) -> Properties {
        let field = format!("{at}: template");
        let mut seen: Vec<String> = Vec::new();
        let mut next = all.remove("template");
        while let Some(name) = next {
            if seen.contains(&name) {
                seen.push(name);
                problems.add(field, format!("leads in a circle: {}", seen.join(", then ")));
                return all;
            }
            if seen.len() == MAX_TEMPLATES {
                problems.add(
                    field,
                    format!("leads through more than {MAX_TEMPLATES} templates, which is the most"),
                );
                return all;
            }
            let Some(mut found) = self.template(&field, &name, problems) else {
                return all;
            };
            seen.push(name);
            next = found.remove("template");
            for (key, value) in found {
                all.entry(key).or_insert(value);
            }
        }
        all
    }

    fn template(&self, field: &str, name: &str, problems: &mut Problems) -> Option<Properties> {
        if !name.starts_with(TEMPLATE) {
            problems.add(
                field,
                format!("is {name:?}; the name of a ConfigMap {TEMPLATE}NAME is allowed"),
            );
            return None;
        }
        match self.sources.text_of(name) {
            Some(Ok(text)) => Some(properties::read(name, text, problems)),
            Some(Err(why)) => {
                problems.add(field, format!("is {name}, which cannot be used: {why}"));
                None
            }
            None => {
                problems.add(
                    field,
                    format!(
                        "is {name}, and there is no such ConfigMap in namespace {}",
                        self.namespace
                    ),
                );
                None
            }
        }
    }

    fn method(&self, at: &str, mut all: Properties, problems: &mut Problems) -> Option<Method> {
        let action = action(at, all.remove("action"), problems);
        let level = number(at, "level", all.remove("level"), problems).unwrap_or(1);
        let in_range = u8::try_from(level).ok().filter(|level| LEVELS.contains(level));
        if in_range.is_none() {
            problems.add(format!("{at}: level"), format!("is {level}; 1 to 9 is allowed"));
        }
        let resource = resource(at, all.remove("resource"), problems);
        let times = times(at, &mut all, problems);
        let zone = all.remove("worker_zone");
        let declared = self.driver(at, &mut all, problems)?;
        let (parameters, secrets) = self.split(at, declared, all, problems);
        Some(Method {
            action,
            level: in_range?,
            resource: resource.or_else(|| own_resource(declared, &parameters)),
            driver: declared.name.to_owned(),
            parameters,
            secrets,
            zone,
            times,
        })
    }

    fn driver(
        &self,
        at: &str,
        all: &mut Properties,
        problems: &mut Problems,
    ) -> Option<&'static Declaration> {
        let (driver, agent) = (all.remove("driver"), all.remove("agent_name"));
        let name = match (driver, agent) {
            (None, None) => {
                problems.add(
                    at,
                    "names neither a driver nor an agent; driver=NAME or agent_name=fence_NAME is allowed, here or in its template",
                );
                return None;
            }
            (Some(driver), None) => driver,
            (driver, Some(agent)) => {
                if let Some(driver) = driver.filter(|driver| driver != FENCE_AGENT) {
                    problems.add(
                        format!("{at}: driver"),
                        format!("is {driver:?}, and agent_name is given as well; one of them is allowed"),
                    );
                    return None;
                }
                all.insert("agent".to_owned(), agent);
                FENCE_AGENT.to_owned()
            }
        };
        let found = self.drivers.get(&name);
        if found.is_none() {
            let known: Vec<&str> = self.drivers.all().map(|declared| declared.name).collect();
            problems.add(
                format!("{at}: driver"),
                format!("is {name:?}; allowed: {}", known.join(", ")),
            );
        }
        found
    }

    /// What is a secret, and what is not.
    fn split(
        &self,
        at: &str,
        declared: &Declaration,
        all: Properties,
        problems: &mut Problems,
    ) -> (Parameters, BTreeMap<String, SecretReference>) {
        let (mut parameters, mut secrets) = (Parameters::new(), BTreeMap::new());
        for (key, value) in all {
            let is_secret = is_secret_name(&key) || declared.secrets.iter().any(|secret| secret.name == key);
            let reference = match value.strip_prefix("secret:") {
                Some(place) => Some(SecretReference::parse(&format!(
                    "secret:{}/{place}",
                    self.cluster
                ))),
                None => is_secret.then(|| SecretReference::parse(&value)),
            };
            match reference {
                None => drop(parameters.insert(key, value)),
                Some(Ok(reference)) => drop(secrets.insert(key, reference)),
                Some(Err(_)) => problems.add(format!("{at}: {key}"), self.no_plain_secret(&key)),
            }
        }
        (parameters, secrets)
    }

    fn no_plain_secret(&self, key: &str) -> String {
        format!(
            "is a secret, and its value must not stand in a ConfigMap; put it into a Secret in namespace {} and write \
             {key}=secret:SECRETNAME/SECRETKEY",
            self.namespace
        )
    }
}

fn action(at: &str, given: Option<String>, problems: &mut Problems) -> Option<Action> {
    let given = given?;
    match given.as_str() {
        "off" => Some(Action::Off),
        "on" => Some(Action::On),
        "reboot" => Some(Action::Reboot),
        _ => {
            problems.add(
                format!("{at}: action"),
                format!("is {given:?}; off, on or reboot is allowed"),
            );
            None
        }
    }
}

fn resource(at: &str, given: Option<String>, problems: &mut Problems) -> Option<Resource> {
    let given = given?;
    let known = [Resource::Power, Resource::Storage, Resource::Network];
    let found = known.into_iter().find(|resource| resource.as_str() == given);
    if found.is_none() {
        problems.add(
            format!("{at}: resource"),
            format!("is {given:?}; power, storage or network is allowed"),
        );
    }
    found
}

/// What a driver or an agent acts on, where there is only one such thing.
fn own_resource(declared: &Declaration, parameters: &Parameters) -> Option<Resource> {
    if let [only] = declared.resources {
        return Some(*only);
    }
    let agent = parameters.get("agent")?;
    let mut fabrics = FABRICS.iter();
    fabrics
        .find(|(name, _)| name == agent)
        .map(|(_, resource)| *resource)
}

fn times(at: &str, all: &mut Properties, problems: &mut Problems) -> MethodTimes {
    let default = MethodTimes::default();
    let mut take = |key: &str| number(at, key, all.remove(key), problems);
    MethodTimes {
        attempt_timeout_s: take("attempt_timeout_s").unwrap_or(default.attempt_timeout_s),
        timeout_s: take("timeout_s").unwrap_or(default.timeout_s),
        retries: take("retries").unwrap_or(default.retries),
        pause_ms: take("pause_ms").unwrap_or(default.pause_ms),
        settle_s: take("settle_s").unwrap_or(default.settle_s),
        lingers_s: take("lingers_s"),
    }
}

fn number(at: &str, key: &str, given: Option<String>, problems: &mut Problems) -> Option<u32> {
    let given = given?;
    let number = given.parse().ok();
    if number.is_none() {
        problems.add(
            format!("{at}: {key}"),
            format!("is {given:?}; a whole number is allowed"),
        );
    }
    number
}
