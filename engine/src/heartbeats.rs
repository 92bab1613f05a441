//! Hosts that write to a shared storage are alive, whatever the network says: workers read what is there, one engine at a time has them asked, and what
//! it comes to is reported as any source reports.
//!
//! What was read before is kept in memory alone. An engine that takes over, and one whose clock was set, has nothing to compare with and says nothing before
//! the second reading: no restart makes a sign of life or a silence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::{StreamExt, stream};
use ringfence_bus::{DeviceReply, DeviceRequest, HeartbeatsRequest};
use ringfence_core::{
    FailureState, FencingState, FrozenMethod, Heartbeat, HeartbeatReading, HeartbeatWatch, Host, HostId,
    Method, MethodId, Parameters, Refresh, Report, Resource, Segment, SegmentId, Sighting, Source, Timestamp,
    error_chain, is_news, value_of,
};
use ringfence_db::{Asked, Filters, HOSTS, HostRow, Page, SortKey, Test};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::devices::{WAY, no_answer};
use crate::opinions::why;
use crate::pause::pause;
use crate::{Context, Engine, EngineError};

/// Between two readings.
const EVERY: Duration = Duration::from_secs(5);
/// How long a reading is waited for, whatever the method says: silence counts anew after a gap of 30 s.
const LONGEST: Duration = Duration::from_secs(10);
/// The work of reading.
const WORK: &str = "heartbeats";
/// An engine keeps it for so long after each look.
const KEPT_FOR: TimeDelta = TimeDelta::seconds(15);
/// Hosts of one question.
const AT_ONCE: usize = 500;
/// Segments and methods that are looked through.
const MOST: u32 = 10_000;
/// Hosts that are read from the database at a time.
const PAGE: u32 = 500;
/// The parameter of every driver that says after how many seconds without a heartbeat a host is UNREACHABLE.
const SILENT_AFTER: &str = "silent_after_s";
/// The most that it may say.
const LONGEST_SILENCE_S: i64 = 3_600;
/// The parameter of every driver that names the host.
pub(crate) const HOST_IN_STORAGE: &str = "host";
/// How old a report may become before it is repeated.
const REFRESH: TimeDelta = TimeDelta::seconds(60);
/// How old one may become of a host whose silence may prove something, or that is not UP, FENCED or in an operation.
const REFRESH_SOON: TimeDelta = TimeDelta::seconds(5);

/// How long what an engine before has told counts; it tells of a host that is UP every minute.
const HEARD_FOR: TimeDelta = TimeDelta::seconds(120);
/// Questions of one method that are asked side by side.
const QUESTIONS_AT_ONCE: usize = 16;

/// What is known of the hosts of one method; locked while it is read.
type Known = Arc<Mutex<Watches>>;

/// The hosts of one method.
#[derive(Default)]
struct Watches {
    hosts: BTreeMap<Place, Watched>,
    /// Why the storage could not be read the last time, so that only a change is told.
    problem: Option<String>,
}

/// One host at one place.
struct Watched {
    watch: HeartbeatWatch,
    /// Whether its heartbeats were read elsewhere before: that it was heard there says nothing of what was left behind here.
    is_moved: bool,
}

/// Where the heartbeats of a host are: what was read elsewhere is not compared with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    host: HostId,
    name: String,
    parameters: Parameters,
}

/// Has heartbeats read until it is told to stop.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    let mut known = BTreeMap::new();
    let mut clock_set_at = engine.0.clock.set_at();
    let mut turns = JoinSet::new();
    loop {
        if clock_set_at != engine.0.clock.set_at() {
            clock_set_at = engine.0.clock.set_at();
            known.clear();
        }
        if let Err(error) = turn(&engine, &mut known, &mut turns).await {
            tracing::warn!(error = %error_chain(&error), "no heartbeats could be looked for");
        }
        if !pause(&stop, EVERY).await {
            return;
        }
        while turns.try_join_next().is_some() {}
    }
}

/// A storage that hangs keeps no other from being read.
async fn turn(
    engine: &Engine,
    known: &mut BTreeMap<(MethodId, u64), Known>,
    turns: &mut JoinSet<()>,
) -> Result<(), EngineError> {
    let mut reader = engine.0.db.reader();
    let segments = ringfence_db::list_segments(&mut reader, MOST).await?;
    let naming: Vec<_> = segments
        .into_iter()
        .filter(|segment| !segment.policy.heartbeats.is_empty())
        .collect();
    if naming.is_empty() || !engine.take_work(WORK, KEPT_FOR).await? {
        known.clear();
        return Ok(());
    }
    let methods = ringfence_db::list_methods(&mut reader, MOST).await?;
    let named = methods.into_iter().filter_map(|method| {
        let is_naming = |segment: &&Segment| segment.policy.heartbeats.contains(&method.name);
        let segments: Vec<Segment> = naming.iter().filter(is_naming).cloned().collect();
        let is_read = method.resource == Resource::Heartbeat && !segments.is_empty();
        is_read.then_some((method, segments))
    });
    let named: BTreeMap<_, _> = named
        .map(|(method, segments)| ((method.id, method.revision), (method, segments)))
        .collect();
    known.retain(|key, _| named.contains_key(key));
    for (key, (method, segments)) in named {
        let of_method = Arc::clone(known.entry(key).or_default());
        if let Ok(of_method) = of_method.try_lock_owned() {
            turns.spawn(read(engine.clone(), method, segments, of_method));
        }
    }
    Ok(())
}

async fn read(engine: Engine, method: Method, segments: Vec<Segment>, mut watches: OwnedMutexGuard<Watches>) {
    if let Err(error) = try_read(&engine, &method, &segments, &mut watches).await {
        tracing::warn!(method = method.name, error = %error_chain(&error), "heartbeats could not be recorded");
    }
}

async fn try_read(
    engine: &Engine,
    method: &Method,
    segments: &[Segment],
    watches: &mut Watches,
) -> Result<(), EngineError> {
    let hosts = hosts_of(engine, segments).await?;
    let mut known = std::mem::take(&mut watches.hosts);
    let self_fencing: BTreeMap<SegmentId, bool> = segments
        .iter()
        .map(|segment| (segment.id, segment.policy.self_fencing_timeout_s.is_some()))
        .collect();
    // A zone or a storage that hangs keeps no other from being read.
    let questions = stream::iter(questions(engine, method, hosts));
    let mut answers = questions
        .map(|(frozen, hosts)| ask_all(engine, frozen, hosts))
        .buffer_unordered(QUESTIONS_AT_ONCE);
    while let Some((frozen, hosts, readings)) = answers.next().await {
        let silent_after = silent_after(engine, &frozen);
        let shared = shared_names(&hosts);
        for (hosts, mut reading) in hosts.chunks(AT_ONCE).zip(readings) {
            reading.leave_out(&shared);
            watches.tell(&method.name, reading.heartbeats.as_ref().err());
            let news = hosts.iter().filter_map(|(row, name)| {
                let counted = self_fencing.get(&row.host.segment_id) == Some(&true);
                let place = Place {
                    host: row.host.id,
                    name: name.clone(),
                    parameters: frozen.parameters.clone(),
                };
                let mut watched = known.remove(&place).unwrap_or_else(|| Watched {
                    watch: HeartbeatWatch::new(silent_after, reading.asked_at),
                    is_moved: is_known(&known, row.host.id),
                });
                let report = reading.conclude(method, row, name, counted, &mut watched);
                watches.hosts.insert(place, watched);
                Some((row.host.id.to_string(), report?))
            });
            record(engine, news.collect()).await?;
        }
    }
    Ok(())
}

/// Whether the host was read, under another name or elsewhere.
fn is_known(known: &BTreeMap<Place, Watched>, host: HostId) -> bool {
    let first = Place {
        host,
        name: String::new(),
        parameters: Parameters::new(),
    };
    known
        .range(first..)
        .next()
        .is_some_and(|(place, _)| place.host == host)
}

/// Asks for the hosts of one question, some at a time. Once there is no answer, the others are not asked for.
async fn ask_all(
    engine: &Engine,
    method: FrozenMethod,
    hosts: Vec<(HostRow, String)>,
) -> (FrozenMethod, Vec<(HostRow, String)>, Vec<Reading>) {
    let mut readings: Vec<Reading> = Vec::new();
    for hosts in hosts.chunks(AT_ONCE) {
        let failed = readings.last().filter(|last| last.heartbeats.is_err()).cloned();
        readings.push(match failed {
            Some(failed) => failed,
            None => ask(engine, &method, hosts).await,
        });
    }
    (method, hosts, readings)
}

async fn hosts_of(engine: &Engine, segments: &[Segment]) -> Result<Vec<HostRow>, EngineError> {
    let mut reader = engine.0.db.reader();
    let mut hosts = Vec::new();
    let Some(filter) = HOSTS.filter("segment") else {
        return Ok(hosts);
    };
    for segment in segments {
        let id = Asked::Text(segment.id.to_string());
        let filters = Filters::default().and(filter, Test::is(id));
        let mut marker = None;
        loop {
            let page = Page {
                limit: PAGE,
                marker,
                sort: vec![SortKey::Name.ascending()],
            };
            let rows = ringfence_db::hosts_page(&mut reader, &filters, &page).await?;
            marker = rows.last().map(|row| row.host.id.0);
            let is_last = rows.len() < PAGE as usize;
            hosts.extend(rows);
            if is_last {
                break;
            }
        }
    }
    Ok(hosts)
}

/// The method as it is filled in for hosts, each with those that differ by no more than their names in the storage. A host for which it cannot be filled in is
/// not read.
fn questions(
    engine: &Engine,
    method: &Method,
    hosts: Vec<HostRow>,
) -> Vec<(FrozenMethod, Vec<(HostRow, String)>)> {
    let mut questions: Vec<(FrozenMethod, Vec<(HostRow, String)>)> = Vec::new();
    for row in hosts {
        let Ok(mut frozen) = FrozenMethod::new(&engine.0.drivers, method, &row.host) else {
            continue;
        };
        let name = name_in_storage(&mut frozen, &row.host);
        match questions.iter_mut().find(|(known, _)| *known == frozen) {
            Some((_, hosts)) => hosts.push((row, name)),
            None => questions.push((frozen, vec![(row, name)])),
        }
    }
    questions
}

impl Watches {
    fn tell(&mut self, method: &str, problem: Option<&String>) {
        if self.problem.as_ref() == problem {
            return;
        }
        match problem {
            Some(why) => tracing::warn!(method, why, "the storage of heartbeats cannot be read"),
            None => tracing::info!(method, "the storage of heartbeats can be read again"),
        }
        self.problem = problem.cloned();
    }
}

/// The name by which the storage knows the host; it is taken out of the method.
pub(crate) fn name_in_storage(method: &mut FrozenMethod, host: &Host) -> String {
    let own = method.parameters.remove(HOST_IN_STORAGE);
    own.filter(|name| !name.is_empty())
        .unwrap_or_else(|| host.known_as().to_owned())
}

/// What a worker has read, and when.
#[derive(Clone)]
struct Reading {
    heartbeats: Result<BTreeMap<String, Heartbeat>, String>,
    worker: String,
    asked_at: Timestamp,
    answered_at: Timestamp,
}

async fn ask(engine: &Engine, method: &FrozenMethod, hosts: &[(HostRow, String)]) -> Reading {
    let budget = Duration::from_secs(u64::from(method.times.attempt_timeout_s)).min(LONGEST);
    let request = DeviceRequest::Heartbeats(HeartbeatsRequest {
        method: method.clone(),
        hosts: hosts.iter().map(|(_, name)| name.clone()).collect(),
        budget_ms: u64::try_from(budget.as_millis()).unwrap_or(u64::MAX),
    });
    let asked_at = engine.0.clock.now();
    let answer = engine
        .ask_worker(method.resource, &method.zone, &request, budget + WAY)
        .await
        .and_then(|reply| match reply {
            DeviceReply::Read {
                heartbeats, worker, ..
            } => Ok((heartbeats, worker)),
            other => Err(no_answer(other)),
        });
    let answered_at = engine.0.clock.now();
    let (heartbeats, worker) = match answer {
        Ok((heartbeats, worker)) => (Ok(heartbeats), worker),
        Err(error) => (Err(why(&error)), String::new()),
    };
    Reading {
        heartbeats,
        worker,
        asked_at,
        answered_at,
    }
}

/// Names that several hosts have: what is written under them is a heartbeat of none.
fn shared_names(hosts: &[(HostRow, String)]) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    let again = hosts.iter().filter(|(_, name)| !known.insert(name.as_str()));
    again.map(|(_, name)| name.clone()).collect()
}

impl Reading {
    fn leave_out(&mut self, shared: &BTreeSet<String>) {
        if let Ok(read) = &mut self.heartbeats {
            read.retain(|name, _| !shared.contains(name));
        }
    }

    /// What is to be reported of a host.
    fn conclude(
        &self,
        method: &Method,
        row: &HostRow,
        name: &str,
        is_silence_counted: bool,
        watched: &mut Watched,
    ) -> Option<Report> {
        let unclear = |why: &str| Heartbeat::Unclear { why: why.to_owned() };
        let heartbeat = match &self.heartbeats {
            Ok(read) => read
                .get(name)
                .cloned()
                .unwrap_or_else(|| unclear("it was not read")),
            Err(why) => unclear(why),
        };
        let source = source_of(&method.name);
        let own = row.host.sources.get(&source);
        let reading = HeartbeatReading {
            heartbeat: &heartbeat,
            worker: &self.worker,
            asked_at: self.asked_at,
            answered_at: self.answered_at,
        };
        let was_heard = !watched.is_moved && was_heard(own, method, self.asked_at);
        let sighting = watched.watch.take(reading, was_heard)?;
        is_news(sighting, own, refresh(row, is_silence_counted)).then(|| report(source, sighting))
    }
}

/// The name of the source that reports what a method reads.
fn source_of(method: &str) -> String {
    format!("heartbeat:{method}")
}

/// Whether an engine before this one has heard the host by the method as it is now, and has told of it to the end.
fn was_heard(own: Option<&Source>, method: &Method, now: Timestamp) -> bool {
    own.is_some_and(|own| {
        own.alive_at.is_some_and(|at| at > method.updated_at) && now - own.reported_at <= HEARD_FOR
    })
}

/// What the method says, or its driver.
fn silent_after(engine: &Engine, method: &FrozenMethod) -> TimeDelta {
    let declared = engine.0.drivers.get(&method.driver);
    let by_default = declared.and_then(|declared| declared.parameter(SILENT_AFTER)?.default);
    let seconds = value_of(&method.parameters, SILENT_AFTER).or(by_default);
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    TimeDelta::seconds(seconds.unwrap_or(LONGEST_SILENCE_S))
}

/// Where another source is silent about the host, a sign of life speaks against that at once. A fence that is under way has to hear soon of what the host did before
/// it: a sign that is told late would end the fence's proofs.
fn refresh(row: &HostRow, is_silence_counted: bool) -> Refresh {
    let is_fenced = row.host.fencing_state() == FencingState::Fenced;
    let soon_if = |is_soon| if is_soon { REFRESH_SOON } else { REFRESH };
    Refresh {
        up: soon_if(is_fenced || row.operation.is_some() || row.host.failure_state != FailureState::Up),
        silence: soon_if(is_silence_counted && !is_fenced),
    }
}

fn report(source: String, sighting: Sighting) -> Report {
    Report {
        state: sighting.state,
        source,
        observed_at: sighting.observed_at,
        last_seen_at: sighting.last_seen_at,
        silent_since: sighting.silent_since,
        boot: None,
    }
}

/// A report that a newer one has made old is no fault.
async fn record(engine: &Engine, reports: Vec<(String, Report)>) -> Result<(), EngineError> {
    if reports.is_empty() {
        return Ok(());
    }
    let by = Context::own("ringfence");
    for taken in engine.report_failure_states(reports, &by).await? {
        match taken {
            Ok(_) => {}
            Err(EngineError::Refused(refusal)) => {
                tracing::debug!(why = %refusal, "a heartbeat came too late");
            }
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "a heartbeat could not be taken down");
            }
        }
    }
    Ok(())
}
