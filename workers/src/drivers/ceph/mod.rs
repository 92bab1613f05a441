//! The driver `ceph`: a host's addresses on the blocklist of a Ceph, by the program `ceph`.
//!
//! The entry is in the map of OSDs that the monitors have agreed upon. An OSD with an older map learns of the new one from the first request
//! of a client that has it, and every client that starts after the fence has it: after its first request an OSD takes no write of the fenced
//! host. Metadata servers end the sessions of clients whose address is on the list by themselves (`Server::apply_blocklist` in Ceph's source).
//!
//! Ceph's own default ends an entry after an hour. An entry that ends soon is no fence. Ceph 16.2 answers that such an entry was prolonged, and
//! its list goes on to show the old end: the entry has to be removed before it is made anew.

mod blocklist;
mod maps;
mod program;
mod survey;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    CephSurvey, Declaration, FencingKind, FrozenMethod, Observation, Parameter, Problem, Resource, Secret,
    error_chain, value_of,
};
use tokio::time::{Instant, timeout_at};

use self::blocklist::Blocklist;
use self::program::{Ceph as Program, is_definite, words};
use self::survey::KnownMaps;
use crate::act::{self, Answer, Device, Reading, end_of_first_reading};
use crate::driver::{Clock, Driver, DriverSettings, HostInStorage, Report};
use crate::drivers::clusters::{CLUSTER, Clusters, OUT_OF_TIME};
use crate::drivers::{Entry, required};
use crate::process::ProcessError;
use crate::{Secrets, WorkerError};
use ringfence_backends::{ALLOWED_ADDRESSES, Address, Addresses, TimeGiven};

/// Seconds that an entry lasts: five years, as Ceph's driver for Kubernetes has them.
const LASTS_S: &str = "157784760";
const CONF: &str = "/etc/ceph/ceph.conf";
const USER: &str = "client.ringfence";
const NAMESPACE: &str = "namespace";
const BLOCKLIST: [&str; 2] = ["osd", "blocklist"];

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "ceph",
        about: "Ceph: the host's addresses on the blocklist of the OSDs",
        resources: &[Resource::Storage],
        parameters: &[
            Parameter::optional(
                "addresses",
                "all addresses from which the host reaches Ceph; a method or the host has to give them",
            )
            .tells_apart()
            .allowing(ALLOWED_ADDRESSES, |list| Addresses::parse(list).is_ok()),
            Parameter::optional("conf", "the configuration of the cluster, a file on the worker")
                .says_where()
                .by_default(CONF)
                .allowing("an absolute path is allowed", |path| path.starts_with('/')),
            Parameter::optional("monitors", "addresses of the monitors, in place of those in conf")
                .says_where()
                .allowing(
                    "addresses with commas between them are allowed, such as 192.0.2.1,v2:192.0.2.2:3300",
                    are_monitors,
                ),
            Parameter::optional(
                CLUSTER.name,
                "one of kubernetes.clusters of the worker, where Rook runs the Ceph: its monitors are read there, in place of those in conf",
            )
            .says_where(),
            Parameter::optional(NAMESPACE, "the namespace of Rook's CephCluster; needed with cluster").says_where(),
            Parameter::optional(
                "host",
                "the name by which Ceph knows the host, where that is neither its own nor the first label of that",
            )
            .allowing("letters, digits, dots and hyphens are allowed", is_host),
            Parameter::optional("user", "the user of Ceph")
                .by_default(USER)
                .allowing("client. and a name is allowed, such as client.ringfence", is_user),
        ],
        secrets: &[Secret {
            name: "keyring",
            is_required: false,
        }],
        others: None,
        place: None,
        lingers_s: 120,
        device: |_| None,
        can_prove: |_| true,
    },
    make: |settings| Arc::new(Ceph::new(settings)),
};

fn are_monitors(list: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".:,[]-".contains(c);
    list.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && list.chars().all(allowed)
}

fn is_host(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.chars().all(allowed)
}

fn is_user(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    name.strip_prefix("client.")
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(allowed))
}

/// The driver `ceph`.
pub struct Ceph {
    program: PathBuf,
    clock: Clock,
    clusters: Clusters,
    known: KnownMaps,
}

impl Ceph {
    /// With the program and the clusters of these settings.
    #[must_use]
    pub fn new(settings: &DriverSettings) -> Self {
        Self {
            program: settings.ceph.clone(),
            clock: Arc::clone(&settings.clock),
            clusters: Clusters::of(settings),
            known: KnownMaps::default(),
        }
    }

    async fn cluster<'a>(
        &'a self,
        method: &'a FrozenMethod,
        secrets: &'a Secrets,
        until: Instant,
    ) -> Result<Cluster<'a>, WorkerError> {
        let addresses = value_of(&method.parameters, "addresses").ok_or_else(|| {
            let name = &method.name;
            WorkerError::refused(format!(
                "method {name} has no addresses; give them with the host, as {name}.addresses=192.0.2.7"
            ))
        })?;
        let addresses = Addresses::parse(addresses)
            .map_err(|why| WorkerError::refused(format!("parameter addresses {why}; {ALLOWED_ADDRESSES}")))?;
        Ok(Cluster {
            ceph: self.program(method, secrets, until).await?,
            addresses,
            clock: &self.clock,
        })
    }

    async fn program<'a>(
        &'a self,
        method: &'a FrozenMethod,
        secrets: &'a Secrets,
        until: Instant,
    ) -> Result<Program<'a>, WorkerError> {
        let is_rooks = [CLUSTER.name, NAMESPACE]
            .iter()
            .any(|name| method.parameters.contains_key(*name));
        let monitors = match is_rooks {
            true => Some(self.rook_monitors(method, until).await?),
            false => None,
        };
        Ok(Program::new(&self.program, method, secrets, monitors))
    }

    /// They move, so that they are read each time.
    async fn rook_monitors(&self, method: &FrozenMethod, until: Instant) -> Result<String, WorkerError> {
        let cluster = self.clusters.of_method(method)?;
        let namespace = required(method, NAMESPACE)?;
        match timeout_at(until, cluster.rook_monitors(namespace)).await {
            Ok(Ok(monitors)) => monitors.map_err(WorkerError::refused),
            Ok(Err(error)) if error.is_passing() => Err(WorkerError::unclear(error.to_string())),
            Ok(Err(error)) => Err(WorkerError::refused(error.to_string())),
            Err(_) => Err(WorkerError::unclear(OUT_OF_TIME)),
        }
    }
}

#[async_trait]
impl Driver for Ceph {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let (time, until) = (TimeGiven::of(budget), Instant::now() + budget);
        let secrets = program::with_keys(secrets);
        match self.cluster(method, &secrets, until).await {
            Ok(cluster) => act::act_and_observe(&cluster, kind, &secrets, &self.clock, time).await,
            Err(error) => error.into(),
        }
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let until = Instant::now() + budget;
        let secrets = program::with_keys(secrets);
        let cluster = self.cluster(method, &secrets, until).await?;
        act::observe(&cluster, &secrets, &self.clock, until).await
    }

    async fn survey(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        about: HostInStorage<'_>,
        budget: Duration,
    ) -> Result<CephSurvey, WorkerError> {
        let until = Instant::now() + budget;
        let secrets = program::with_keys(secrets);
        let ceph = self.program(method, &secrets, until).await?;
        let survey = self.known.survey(&ceph, about, until).await;
        survey.map_err(|error| act::clean_error(error, &secrets))
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let absent = |path: &Path, at: &str| {
            let words = format!("needs {}, which is not on the worker", path.display());
            (!path.is_file()).then(|| Problem::new(at, words))
        };
        let given = |name| value_of(&request.parameters, name);
        let conf = given("conf");
        let needs_conf = conf.is_some() || given("monitors").or(given(CLUSTER.name)).is_none();
        let conf = needs_conf.then(|| conf.unwrap_or(CONF));
        let conf = conf.and_then(|conf| absent(Path::new(conf), "parameters.conf"));
        absent(&self.program, "driver").into_iter().chain(conf).collect()
    }
}

/// One Ceph, and what it knows one host by.
struct Cluster<'a> {
    ceph: Program<'a>,
    addresses: Addresses,
    clock: &'a Clock,
}

impl Cluster<'_> {
    async fn list(&self, until: Instant) -> Result<Blocklist, Reading> {
        let ended = match self
            .ceph
            .run(&[&BLOCKLIST, &["ls", "--format", "json"][..]].concat(), until)
            .await
        {
            Ok(ended) => ended,
            Err(error @ ProcessError::Missing(_)) => return Err(Reading::Refused(error.to_string())),
            Err(error) => return Err(Reading::Unclear(error_chain(&error))),
        };
        match ended.code {
            Some(0) => Blocklist::parse(&ended.stdout).map_err(Reading::Unclear),
            _ if is_definite(&ended) => Err(Reading::Refused(words(&ended))),
            _ => Err(Reading::Unclear(words(&ended))),
        }
    }

    /// Nothing is known to be fenced while an entry ends soon, so that nothing is lost where the entry is removed.
    async fn remove_short(&self, until: Instant) -> Answer {
        match self.list(end_of_first_reading(until)).await {
            Ok(list) => {
                let short = list.short(&self.addresses, (self.clock)());
                self.each(short, "rm", None, until).await
            }
            Err(Reading::Refused(why)) => Answer::Refused(why),
            Err(_) => Answer::Sent(String::new()),
        }
    }

    /// Gives a command for each address.
    async fn each(
        &self,
        addresses: impl Iterator<Item = Address> + Send,
        verb: &str,
        lasts: Option<&str>,
        until: Instant,
    ) -> Answer {
        let mut answers = Vec::new();
        for address in addresses {
            let text = address.to_string();
            let range = address.is_range().then_some("range");
            let arguments = range.into_iter().chain([verb, &text]).chain(lasts);
            let arguments: Vec<_> = BLOCKLIST.into_iter().chain(arguments).collect();
            match self.ceph.run(&arguments, until).await {
                Ok(ended) if is_definite(&ended) => return Answer::Refused(words(&ended)),
                Ok(ended) => answers.push(words(&ended)),
                Err(error @ ProcessError::Missing(_)) => return Answer::Refused(error.to_string()),
                Err(error) => answers.push(error_chain(&error)),
            }
        }
        Answer::Sent(answers.join("; "))
    }
}

#[async_trait]
impl Device for Cluster<'_> {
    async fn read(&self, until: Instant) -> Reading {
        match self.list(until).await {
            Ok(list) => list.reading(&self.addresses, (self.clock)()),
            Err(reading) => reading,
        }
    }

    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        match kind {
            FencingKind::StorageFence => match self.remove_short(until).await {
                Answer::Sent(_) => {
                    self.each(self.addresses.iter(), "add", Some(LASTS_S), until)
                        .await
                }
                refused @ Answer::Refused(_) => refused,
            },
            FencingKind::StorageUnfence => self.each(self.addresses.iter(), "rm", None, until).await,
            other => Answer::Refused(format!("driver ceph cannot do {other}")),
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_can_be_taken_for_an_option_of_the_program() {
        for monitors in ["192.0.2.1", "[fd00::1]:3300,mon-b.example", "v2:192.0.2.2:3300"] {
            assert!(are_monitors(monitors), "{monitors}");
        }
        for monitors in ["", "-m", "--conf=/x", "a b", "a;b"] {
            assert!(!are_monitors(monitors), "{monitors}");
        }
        assert!(is_user("client.rf-1"));
        for user in ["client.", "ringfence", "osd.1", "client.a b", "--name"] {
            assert!(!is_user(user), "{user}");
        }
    }
}
