//! Watching the hosts of platforms: one question for all hosts of a platform, and one engine at a time asks it.

mod adopt;
mod conditions;
mod departures;
mod gates;
mod labels;
mod latecomers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_backends::{BackendError, KeptHost, Platform};
use ringfence_core::{
    Boot, BootSighting, BootWatch, FailureState, Generation, HostState, Poll, Refresh, Report, Sighting,
    Timestamp, Watch, error_chain, gate_of_all, is_mark_left_over, is_news, movable_now, stays_isolated,
};
use ringfence_db::CloudHost;
use tokio_util::sync::CancellationToken;

use self::adopt::Adopter;
use self::conditions::Conditions;
use self::departures::Departing;
use self::gates::Gates;
use self::latecomers::Latecomers;
use crate::pause::pause;
use crate::{Context, Engine, EngineError};

/// How the hosts of one platform are watched.
#[derive(Clone, Debug)]
pub struct ObserverConfig {
    /// Between two questions.
    pub every: Duration,
    /// How long a host may be silent.
    pub down_after: TimeDelta,
    /// The segment to which new hosts of the platform are added by themselves; `None` if they are not.
    pub adopt: Option<String>,
    /// How long the platform must not have named a host before the host is removed by itself, if it was added by itself; `None` if none is.
    pub remove_after: Option<TimeDelta>,
}

impl Default for ObserverConfig {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(5),
            down_after: TimeDelta::seconds(60),
            adopt: None,
            remove_after: None,
        }
    }
}

/// How old a report may become before it is repeated.
const REFRESH: TimeDelta = TimeDelta::seconds(60);
/// How old the report of a silence may become that may prove something: a gap between two reports would start it anew.
const REFRESH_OF_SILENCE: TimeDelta = TimeDelta::seconds(10);
/// How old the report of a FENCED host may become that it is UP: the host may be taken back a few seconds after the end of its fence.
const REFRESH_OF_RETURN: TimeDelta = TimeDelta::seconds(5);
/// An engine has a platform for the time of one answer and so many more questions; then another one takes over.
const KEPT_FOR: u32 = 2;
/// Hosts that are looked up between two questions because of a mark that may be left over.
const FREED_AT_ONCE: usize = 64;

/// Watches one platform until it is told to stop.
pub(crate) async fn watch(
    engine: Engine,
    platform: Arc<dyn Platform>,
    config: ObserverConfig,
    stop: CancellationToken,
) {
    let every = config.every;
    let mut observer = Observer::new(&engine, Arc::clone(&platform), config);
    loop {
        let wait = if observer.turn(&engine).await {
            Duration::ZERO
        } else {
            every
        };
        tokio::select! {
            goes_on = pause(&stop, wait) => {
                if !goes_on {
                    return;
                }
            }
            () = platform.changed() => {}
        }
    }
}

/// What one engine knows of one platform.
struct Observer {
    platform: Arc<dyn Platform>,
    config: ObserverConfig,
    /// Its name in reports.
    source: String,
    watch: Watch,
    /// When the engine's clock had last been set to another time when the watch began.
    clock_set_at: Option<Timestamp>,
    adopter: Option<Adopter>,
    /// Whether the platform has answered the last time, so that only a change is told.
    answers: Option<bool>,
    /// Why the platform could not be kept as it was told, so that only a change is told.
    not_kept: Option<String>,
    gates: Gates,
    latecomers: Latecomers,
    departing: Departing,
    boots: BootWatch,
    conditions: Conditions,
}

impl Observer {
    fn new(engine: &Engine, platform: Arc<dyn Platform>, config: ObserverConfig) -> Self {
        let segment = config.adopt.clone();
        Self {
            source: platform.label(),
            watch: Watch::new(config.down_after),
            clock_set_at: engine.0.clock.set_at(),
            adopter: segment.map(|segment| Adopter::new(&*platform, segment)),
            boots: BootWatch::default(),
            conditions: Conditions::default(),
            departing: Departing::new(config.adopt.as_ref().and(config.remove_after)),
            platform,
            config,
            answers: None,
            not_kept: None,
            gates: Gates::default(),
            latecomers: Latecomers::default(),
        }
    }

    /// `true` if the next turn need not wait.
    async fn turn(&mut self, engine: &Engine) -> bool {
        self.try_turn(engine).await.unwrap_or_else(|error| {
            let platform = self.platform.name();
            tracing::warn!(platform, error = %error_chain(&error), "what a platform says could not be recorded");
            false
        })
    }

    async fn try_turn(&mut self, engine: &Engine) -> Result<bool, EngineError> {
        if !self.has_turn(engine).await? {
            // Another engine watches and reports meanwhile. What this one has seen is too old to go on from.
            self.begin_anew(engine);
            self.gates.begin_anew(engine, &*self.platform);
            return Ok(false);
        }
        // What came at a time that is yet to come would look new until then.
        if self.clock_set_at != engine.0.clock.set_at() {
            self.begin_anew(engine);
        }
        // An answer may speak of the moment at which it was asked for.
        let now = engine.0.clock.now();
        let answer = self.platform.look().await;
        self.tell_answer(&answer);
        let mut reader = engine.0.db.reader();
        let hosts = ringfence_db::hosts_of_cloud(&mut reader, self.platform.name(), &self.source).await?;
        let known_as: Vec<&str> = hosts.iter().map(|host| host.known_as.as_str()).collect();
        let sightings = self.watch.look(answer.as_ref().ok(), &known_as, now);
        let news = hosts.iter().filter_map(|host| {
            let sighting = sightings.get(&host.known_as).copied()?;
            is_news(sighting, host.own.as_ref(), refresh(host)).then_some((host, sighting))
        });
        // Those that are UP first: what the others have is moved as soon as they are called UNREACHABLE, and has to find room.
        let (up, others): (Vec<_>, Vec<_>) =
            news.partition(|(_, sighting)| sighting.state == FailureState::Up);
        for (host, sighting) in up.into_iter().chain(others) {
            self.report(engine, host, sighting).await;
        }
        if let Ok(poll) = &answer {
            self.boots.look(poll, now);
        }
        for host in &hosts {
            let sighting = sightings.get(&host.known_as);
            if sighting.is_some_and(|sighting| sighting.state == FailureState::Up) {
                self.report_boot(engine, host).await;
            }
        }
        if let Ok(poll) = &answer
            && self.platform.kind().starts_by_itself()
        {
            self.keep(engine, &hosts, poll).await?;
            self.gates.look(engine, &*self.platform).await;
        }
        if let Ok(poll) = &answer {
            self.departing
                .look(engine, &*self.platform, poll, &hosts, now)
                .await?;
        }
        let Ok(poll) = answer else { return Ok(false) };
        let are_more = self.conditions.look(engine, &self.source, &poll, &hosts).await
            | labels::look(engine, &*self.platform, &poll, &hosts).await;
        let Some(adopter) = &mut self.adopter else {
            return Ok(are_more);
        };
        Ok(adopter.take_in(engine, &poll.hosts, &known_as).await? || are_more)
    }

    /// Read after the look, so that the platform leaves alone what has changed since.
    async fn keep(&mut self, engine: &Engine, hosts: &[CloudHost], poll: &Poll) -> Result<(), EngineError> {
        let now = engine.0.clock.now();
        let mut reader = engine.0.db.reader();
        let read = ringfence_db::kept_states(&mut reader, self.platform.name()).await?;
        // The platform's copy of an open gate is written under the version that the look has seen: another process that has taken the records
        // over since then writes it anew before it releases anything.
        for state in read.iter().filter(|state| gate_of_all(state, now).allowed) {
            engine.confirm_record(&state.host).await?;
        }
        let states: BTreeMap<&str, &HostState> =
            read.iter().map(|state| (state.host.known_as(), state)).collect();
        let freed = self.freed(engine, hosts, poll, &states).await?;
        let hosts: Vec<KeptHost<'_>> = hosts
            .iter()
            .map(|host| {
                let name = host.known_as.as_str();
                kept(name, states.get(name).copied(), freed.contains(name), now)
            })
            .collect();
        let why = self
            .platform
            .keep(&hosts)
            .await
            .err()
            .map(|error| error_chain(&error));
        if let Some(why) = why.as_ref().filter(|why| self.not_kept.as_ref() != Some(why)) {
            tracing::warn!(
                platform = self.platform.name(),
                why,
                "what the platform was told of its FENCED hosts cannot be kept up"
            );
        }
        self.not_kept = why;
        self.latecomers.look(engine, &*self.platform, &read, now).await;
        Ok(())
    }

    /// Hosts with marks that are left over. Another process that has taken the records over since the look may have begun to fence them.
    async fn freed<'a>(
        &self,
        engine: &Engine,
        hosts: &'a [CloudHost],
        poll: &Poll,
        held: &BTreeMap<&str, &HostState>,
    ) -> Result<BTreeSet<&'a str>, EngineError> {
        let kept_off: BTreeSet<&str> = poll
            .hosts
            .iter()
            .filter(|sign| sign.is_kept_off && !held.contains_key(sign.host.as_str()))
            .map(|sign| sign.host.as_str())
            .collect();
        // The marks on others stay, and would take the place of those that go.
        let asked = hosts
            .iter()
            .filter(|host| host.was_ever_fenced && kept_off.contains(host.known_as.as_str()));
        let mut freed = BTreeSet::new();
        for host in asked.take(FREED_AT_ONCE) {
            let seen = ringfence_db::see_host(&mut engine.0.db.reader(), &host.id.to_string()).await?;
            if seen.is_some_and(|seen| is_mark_left_over(&seen.state)) {
                freed.insert(host.known_as.as_str());
            }
        }
        if !freed.is_empty() {
            engine.confirm_lead().await?;
        }
        Ok(freed)
    }

    fn begin_anew(&mut self, engine: &Engine) {
        self.watch = Watch::new(self.config.down_after);
        self.boots = BootWatch::default();
        self.conditions = Conditions::default();
        self.clock_set_at = engine.0.clock.set_at();
    }

    async fn has_turn(&self, engine: &Engine) -> Result<bool, EngineError> {
        let held = self.config.every * KEPT_FOR + self.platform.timeout();
        let held = TimeDelta::from_std(held).unwrap_or(TimeDelta::minutes(5));
        let work = format!("observer {}", self.platform.name());
        engine.take_work(&work, held).await
    }

    fn tell_answer(&mut self, answer: &Result<Poll, BackendError>) {
        let platform = self.platform.name();
        let answers = answer.is_ok();
        if self.answers.replace(answers) == Some(answers) {
            return;
        }
        match answer {
            Ok(poll) => tracing::info!(platform, hosts = poll.hosts.len(), "the platform is watched"),
            Err(error) => tracing::warn!(platform, %error, "the platform cannot be watched"),
        }
    }

    /// A report that a newer one has made old is no fault.
    async fn report(&self, engine: &Engine, host: &CloudHost, sighting: Sighting) {
        let report = Report {
            state: sighting.state,
            source: self.source.clone(),
            observed_at: sighting.observed_at,
            last_seen_at: sighting.last_seen_at,
            silent_since: sighting.silent_since,
            boot: None,
        };
        self.send(engine, host, report).await;
    }

    /// Which boot a host that is UP runs is told when it is another one. While the host is FENCED it is told again and again: the host is taken
    /// back only in a boot that began after another one was seen there.
    async fn report_boot(&mut self, engine: &Engine, host: &CloudHost) {
        let Some(BootSighting { id, at }) = self.boots.take(&host.known_as) else {
            return;
        };
        let known = host.own.as_ref().and_then(|own| own.boots.latest());
        if !host.is_fenced && known.is_some_and(|known| known.boot.id.as_ref() == Some(&id)) {
            return;
        }
        let report = Report {
            state: FailureState::Up,
            source: self.source.clone(),
            observed_at: at,
            last_seen_at: None,
            silent_since: None,
            boot: Some(Boot {
                id: Some(id),
                booted_at: None,
            }),
        };
        self.send(engine, host, report).await;
    }

    async fn send(&self, engine: &Engine, host: &CloudHost, report: Report) {
        let by = Context::own("ringfence");
        match engine
            .report_failure_state(&host.id.to_string(), report, &by)
            .await
        {
            Ok(_) => {}
            Err(EngineError::Refused(refusal)) => {
                tracing::debug!(host = host.name, why = %refusal, "a sighting came too late");
            }
            Err(error) => {
                tracing::warn!(host = host.name, error = %error_chain(&error), "a sighting could not be taken down");
            }
        }
    }
}

fn kept<'a>(
    host: &'a str,
    state: Option<&HostState>,
    is_mark_left_over: bool,
    now: Timestamp,
) -> KeptHost<'a> {
    KeptHost {
        host,
        generation: state.map_or(Generation(0), |state| state.host.generation),
        movable: state.and_then(|state| movable_now(state, now)),
        is_isolated: state.is_some_and(|state| stays_isolated(state, now)),
        is_mark_left_over,
    }
}

fn refresh(host: &CloudHost) -> Refresh {
    Refresh {
        up: if host.is_fenced {
            REFRESH_OF_RETURN
        } else {
            REFRESH
        },
        silence: if host.is_silence_counted {
            REFRESH_OF_SILENCE
        } else {
            REFRESH
        },
    }
}
