//! Whether the devices answer: each is asked for its state, through a worker, as the engines' health checks ask it.

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
use super::hosts::{Site, some_of};
use super::verdict::Silences;
use crate::config::Settings;
use crate::error::{CliError, error_chain};

const PART: &str = "devices";
/// Devices that are asked at the same time: half of what one worker takes, so that engines can ask too.
const AT_ONCE: usize = 8;
/// More are not asked; with devices that answer it takes some minutes.
const MOST: usize = 10_000;
/// Devices of one method that are named one by one.
const NAMED: usize = 20;
/// Between two words on how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// Which devices are asked; all of them if nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// Those of this method.
    pub method: Option<String>,
    /// Those that fence this host.
    pub host: Option<String>,
}

impl Which {
    /// Whether it is all of them.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.method.is_none() && self.host.is_none()
    }
}

/// Hears how many of how many have been asked.
pub type Tell<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// Asks through the workers of the broker; without one, through the standalone service. Gives what was heard, by method.
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
                "the standalone service does not run, and nobody else can ask its devices",
                "start it, and look again",
            );
            return Vec::new();
        }
        Err(error) => {
            report.failure(PART, error_chain(&error), "mend that, and look again");
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
            "no device is to be asked for that method and host",
            "name others",
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
            format!("{left_out} more were not asked"),
            "ask for one at a time: ringfence doctor --devices --method METHOD, or --host HOST",
        );
    }
    heard
}

/// Methods that nobody can ask, since they take something from a host and no host uses them.
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

/// Asks some at a time, and gives what was heard by method.
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

/// What the devices of one method have said.
#[derive(Default)]
pub(super) struct Heard {
    /// The method.
    method: String,
    /// How many show which state.
    states: BTreeMap<String, usize>,
    /// For which hosts one does.
    told: Vec<Option<String>>,
    /// Those that do not tell theirs: the host, and why.
    silent: BTreeMap<Option<String>, String>,
    /// Those that an attempt is at.
    busy: Vec<String>,
}

/// The host that a question was about, in words.
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

    /// Puts what was heard now in the place of what was known before.
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
                format!("{method}: asked now, {told} of {all} tell their state: {states}"),
            );
        }
        if !self.busy.is_empty() {
            let mut busy = self.busy.clone();
            busy.sort();
            report.warning(
                PART,
                format!(
                    "{method}: not asked for {}, as an attempt is at it",
                    some_of(&busy)
                ),
                "ask again when its operation is over",
            );
        }
        for (host, why) in self.silent.iter().take(NAMED) {
            report.warning(
                PART,
                format!("{method} for {}: {why}", named(host.as_ref())),
                "look at the device, its address and its credentials",
            );
        }
        let more = self.silent.len().saturating_sub(NAMED);
        if more > 0 {
            report.warning(
                PART,
                format!("{method}: {more} more do not tell their state"),
                "mend the first ones and look again",
            );
        }
    }
}
