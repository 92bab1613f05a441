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
pub(super) mod program;
mod reached;
mod survey;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    CephSurvey, Declaration, FencingKind, FrozenMethod, Observation, Parameter, Problem, Resource,
    error_chain, value_of,
};
use tokio::time::Instant;

use self::blocklist::Blocklist;
use self::program::{Ceph as Program, is_definite, words};
pub(super) use self::reached::{CONF_FILE, KEYRING, MONITORS, NAMESPACE, ROOK, Reached, USER};
use self::survey::KnownMaps;
use crate::act::{self, Answer, Device, Reading, end_of_first_reading};
use crate::driver::{Clock, Driver, DriverSettings, HostInStorage, Report};
use crate::drivers::Entry;
use crate::process::ProcessError;
use crate::{Secrets, WorkerError};
use ringfence_backends::{ALLOWED_ADDRESSES, Address, Addresses, TimeGiven};

/// Seconds that an entry lasts: five years, as Ceph's driver for Kubernetes has them.
const LASTS_S: &str = "157784760";
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
            CONF_FILE,
            MONITORS,
            ROOK,
            NAMESPACE,
            Parameter::optional(
                "host",
                "the name by which Ceph knows the host, where that is neither its own nor the first label of that",
            )
            .allowing("letters, digits, dots and hyphens are allowed", is_host),
            USER,
        ],
        secrets: &[KEYRING],
        others: None,
        place: None,
        lingers_s: 120,
        device: |_| None,
        can_prove: |_| true,
    },
    make: |settings| Arc::new(Ceph::new(settings)),
};

fn is_host(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && name.chars().all(allowed)
}

/// The driver `ceph`.
pub struct Ceph {
    reached: Reached,
    clock: Clock,
    known: KnownMaps,
}

impl Ceph {
    /// With the program and the clusters of these settings.
    #[must_use]
    pub fn new(settings: &DriverSettings) -> Self {
        Self {
            reached: Reached::of(settings),
            clock: Arc::clone(&settings.clock),
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
            ceph: self.reached.program(method, secrets, until).await?,
            addresses,
            clock: &self.clock,
        })
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
        let ceph = self.reached.program(method, &secrets, until).await?;
        let survey = self.known.survey(&ceph, about, until).await;
        survey.map_err(|error| act::clean_error(error, &secrets))
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.reached.validate(request)
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
