//! Whether the devices answer: each is asked for its state through a worker, as the engines' health checks do.

mod asker;

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use ringfence_bus::AmqpBus;
use ringfence_db::Database;
use ringfence_engine::DeviceQuestion;
use tokio::time::{Instant, interval_at};

use self::asker::{Asker, Said};
use super::Report;
use super::hosts::Site;
use super::names::some_of;
use super::verdict::Silences;
use crate::config::Settings;
use crate::error::{CliError, error_chain};

const PART: &str = "devices";
/// How many devices are asked at a time: half of one worker's capacity, so that engines can ask too.
const AT_ONCE: usize = 8;
/// How many devices are asked at most; with devices that answer this takes some minutes.
const MOST: usize = 10_000;
/// How many devices of one method are named one by one.
const NAMED: usize = 20;
/// The pause between two messages on the progress.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Which devices are asked; all of them if no field is set.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// Only the devices of this method.
    pub method: Option<String>,
    /// Only the devices that fence this host.
    pub host: Option<String>,
}

impl Which {
    /// Whether all devices are asked.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.method.is_none() && self.host.is_none()
    }
}

/// Called with the number of devices that were asked, and of all.
pub type Tell<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Asks through the workers of the broker or, without a broker, through the standalone service. Returns the answers by method.
pub(super) async fn look(
    settings: &Settings,
    db: &Database,
    bus: Option<AmqpBus>,
    site: &Site,
    asked: (&Which, Tell<'_>),
    report: &mut Report,
) -> Vec<Heard> {
    let (which, tell) = asked;
    let opened = match bus {
        Some(bus) => Asker::by_workers(settings, db, bus).await,
        None => Asker::by_service(settings, db).await,
    };
    let asker = match opened {
        Ok(asker) => asker,
        Err(CliError::Nowhere { .. } | CliError::Unreachable { .. }) => {
            report.failure(
                PART,
                "the standalone service does not run, and no other service can ask its devices",
                "start it, then: ringfence doctor --devices",
            );
            return Vec::new();
        }
        Err(error) => {
            report.failure(
                PART,
                error_chain(&error),
                "mend that, then: ringfence doctor --devices",
            );
            return Vec::new();
        }
    };
    let mut questions = match asker.questions(which.host.as_deref()).await {
        Ok(questions) => questions,
        Err(error) => {
            report.failure(PART, error_chain(&error), "name another host");
            return Vec::new();
        }
    };
    if which.is_all() {
        tell_of_unused(&questions, site, report);
    }
    questions.retain(|question| which.method.as_ref().is_none_or(|only| *only == question.method));
    if questions.is_empty() && !which.is_all() {
        report.failure(
            PART,
            "that method has no device for that host",
            "name another method or host",
        );
    }
    let left_out = questions.len().saturating_sub(MOST);
    questions.truncate(MOST);
    let heard = ask(&asker, questions, tell).await;
    for heard in &heard {
        heard.judge(report);
    }
    if left_out > 0 {
        report.warning(
            PART,
            format!("{left_out} more devices were not asked"),
            "ask for one at a time: ringfence doctor --devices --method METHOD, or --host HOST",
        );
    }
    heard
}

/// Warns about methods that cannot be asked, since they take something from a host and no host uses them.
fn tell_of_unused(questions: &[DeviceQuestion], site: &Site, report: &mut Report) {
    let is_asked = |name: &&String| questions.iter().any(|question| question.method == **name);
    let unused: Vec<String> = site
        .methods
        .keys()
        .filter(|name| !is_asked(name))
        .cloned()
        .collect();
    if !unused.is_empty() {
        report.warning(
            PART,
            format!(
                "no host's plan uses {}, and without a host its device is unknown",
                some_of(&unused)
            ),
            "name it in a plan, or delete it",
        );
    }
}

/// Asks some devices at a time, and returns the answers by method.
async fn ask(asker: &Asker, questions: Vec<DeviceQuestion>, tell: Tell<'_>) -> Vec<Heard> {
    let (mut asked, all) = (0, questions.len());
    let answers = stream::iter(questions)
        .map(|question| async move {
            let answer = asker.put(&question).await;
            (question, answer)
        })
        .buffer_unordered(AT_ONCE);
    let mut answers = pin!(answers);
    let mut clock = interval_at(Instant::now() + TOLD_EVERY, TOLD_EVERY);
    let mut by_method: BTreeMap<String, Heard> = BTreeMap::new();
    loop {
        tokio::select! {
            answer = answers.next() => {
                let Some((question, answer)) = answer else { return by_method.into_values().collect() };
                asked += 1;
                let heard = by_method.entry(question.method).or_insert_with_key(|method| Heard::of(method));
                heard.note(question.host, answer);
            }
            _ = clock.tick() => tell(asked, all),
        }
    }
}

/// The answers of one method's devices.
#[derive(Default)]
pub(super) struct Heard {
    /// The method's name.
    method: String,
    /// How many devices show each state.
    states: BTreeMap<String, usize>,
    /// The hosts for which a device tells its state.
    told: Vec<Option<String>>,
    /// The hosts whose device does not tell its state, and why.
    silent: BTreeMap<Option<String>, String>,
    /// The hosts whose device was not asked, since an attempt is using it.
    busy: Vec<String>,
}

/// The host of a question, in words.
fn named(host: Option<&String>) -> String {
    host.cloned().unwrap_or_else(|| "every host".to_owned())
}

impl Heard {
    fn of(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            ..Self::default()
        }
    }

    /// Replaces the older answers by these.
    pub fn tell(&self, silences: &mut Silences) {
        for host in &self.told {
            silences.heard(&self.method, host.as_deref());
        }
        for host in self.silent.keys() {
            silences.note(&self.method, host.as_deref());
        }
    }

    fn note(&mut self, host: Option<String>, said: Said) {
        match said {
            Said::State(state) => {
                *self.states.entry(state).or_default() += 1;
                self.told.push(host);
            }
            Said::Busy => self.busy.push(named(host.as_ref())),
            Said::Nothing(why) => drop(self.silent.insert(host, why)),
        }
    }

    fn judge(&self, report: &mut Report) {
        let method = &self.method;
        let told: usize = self.states.values().sum();
        let all = told + self.silent.len() + self.busy.len();
        if told > 0 {
            let states: Vec<_> = self
                .states
                .iter()
                .map(|(state, n)| format!("{n} {state}"))
                .collect();
            let states = states.join(", ");
            report.good(
                PART,
                format!("{method}: asked now, {told} of {all} devices tell their state: {states}"),
            );
        }
        if !self.busy.is_empty() {
            let mut busy = self.busy.clone();
            busy.sort();
            report.warning(
                PART,
                format!(
                    "{method}: not asked for {}, since an attempt uses the device",
                    some_of(&busy)
                ),
                "ask again when its operation is over",
            );
        }
        for (host, why) in self.silent.iter().take(NAMED) {
            report.warning(
                PART,
                format!("{method} for {}: {why}", named(host.as_ref())),
                "check the device, its address and its credentials",
            );
        }
        let more = self.silent.len().saturating_sub(NAMED);
        if more > 0 {
            report.warning(
                PART,
                format!("{method}: {more} more devices do not tell their state"),
                "mend the first ones, then: ringfence doctor --devices",
            );
        }
    }
}
