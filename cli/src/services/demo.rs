//! The demonstration: six simulated hosts. One has a BMC that lies, one a slow BMC, and one a silent BMC.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use ringfence_core::{
    Backend, Boot, DEFAULT_ZONE, FencingKind, Labels, Level, MethodTimes, PlanScope, PlanStage, Report,
    Resource, SegmentDraft, SegmentPolicy, TaskSpec, default_sufficient_sets,
};
use ringfence_engine::{Context, Engine, EngineError, HostDraft, MethodDraft, PlanDraft};
use ringfence_simulators::{Handle, SeenHost, SimulatorError, Simulators, World};
use tokio::task::JoinHandle;

use super::greeting::{find_commands, program};
use super::home;
use crate::clock::now;
use crate::error::CliError;
use crate::tokens;

/// The segment, and the type of the hosts.
const SEGMENT: &str = "demo";
const HOST_TYPE: &str = "simulated";
/// Between two looks of the monitor.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The greatest age of the monitor's last report of a host.
const REPEAT_EVERY: Duration = Duration::from_secs(3);

/// The simulated world of a data directory, if it was asked for, or an earlier start has left one. It listens on its last port, so that
/// addresses that people have noted still work; if another program listens there, it takes any free port.
pub fn simulators(data_dir: &Path, demo: bool) -> Result<Option<Handle>, CliError> {
    let state_file = data_dir.join(home::SIMULATORS);
    if !demo && !state_file.exists() {
        return Ok(None);
    }
    let port_file = data_dir.join(home::SIMULATORS_PORT);
    let start = |port: u16| {
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        Simulators::start(listen, Some(state_file.clone()), World::demo())
    };
    let last = last_port(&port_file);
    let started = match start(last) {
        Err(SimulatorError::Listen { address, source }) if last != 0 => {
            tracing::warn!(%address, error = %source, "the simulated hosts cannot listen on their last port; they take a free port");
            start(0)
        }
        started => started,
    };
    let handle = started.map_err(|e| CliError::service("demo", "cannot start the simulated hosts", e))?;
    if handle.addr.port() != last {
        tokens::write_private(&port_file, &format!("{}\n", handle.addr.port()))?;
    }
    Ok(Some(handle))
}

/// The last port; 0 stands for any free one.
fn last_port(file: &Path) -> u16 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

/// Adds the parts of the demonstration that are missing; existing parts stay unchanged.
pub async fn set_up(engine: &Engine) -> Result<(), CliError> {
    let by = Context::own("demo");
    let segment = SegmentDraft {
        name: SEGMENT.to_owned(),
        description: "Six simulated hosts".to_owned(),
        policy: SegmentPolicy::default(),
    };
    unless_there(engine.create_segment(segment, &by).await)?;
    for resource in [Resource::Power, Resource::Storage, Resource::Network] {
        unless_there(engine.create_method(method(resource), &by).await)?;
    }
    unless_there(engine.create_plan(plan(), &by).await)?;
    for number in 1..=6 {
        let host = HostDraft {
            name: format!("sim-{number}"),
            segment: Some(SEGMENT.to_owned()),
            backend: Backend::None,
            cloud: None,
            known_as: None,
            host_type: Some(HOST_TYPE.to_owned()),
            labels: Labels::new(),
            zone: DEFAULT_ZONE.to_owned(),
            parameters: BTreeMap::new(),
        };
        unless_there(engine.create_host(host, &by).await)?;
    }
    Ok(())
}

fn unless_there<T>(made: Result<T, EngineError>) -> Result<(), CliError> {
    match made {
        Ok(_) | Err(EngineError::Duplicate(_)) => Ok(()),
        Err(error) => Err(CliError::service("demo", "cannot be set up", error)),
    }
}

fn method_name(resource: Resource) -> String {
    format!("demo-{}", resource.as_str())
}

fn method(resource: Resource) -> MethodDraft {
    MethodDraft {
        name: method_name(resource),
        resource,
        driver: "simulated".to_owned(),
        parameters: BTreeMap::from([("device".to_owned(), "${host.name}".to_owned())]),
        secrets: BTreeMap::new(),
        zone: None,
        // The slow BMC takes 6 s for each answer, and an attempt needs two: command, read.
        times: MethodTimes {
            attempt_timeout_s: 25,
            timeout_s: 30,
            retries: 1,
            ..MethodTimes::default()
        },
    }
}

/// Power first; then, whatever its result, storage and network.
fn plan() -> PlanDraft {
    let task = |kind: FencingKind| TaskSpec {
        kind,
        levels: vec![Level {
            level: 1,
            methods: vec![method_name(kind.resource())],
        }],
    };
    let stage = |tasks| PlanStage { delay_s: 0, tasks };
    PlanDraft {
        name: "demo".to_owned(),
        scope: PlanScope::HostType(HOST_TYPE.to_owned()),
        stages: vec![
            stage(vec![task(FencingKind::PowerOff)]),
            stage(vec![
                task(FencingKind::StorageFence),
                task(FencingKind::NetworkFence),
            ]),
        ],
        sufficient_sets: default_sufficient_sets(),
    }
}

/// The monitor: reports the state of a simulated host when it changes, and again before the last report is too old.
pub fn watch(engine: Engine, world: &Handle) -> JoinHandle<()> {
    let world = world.observer();
    tokio::spawn(async move {
        let mut reported: HashMap<String, (SeenHost, Instant)> = HashMap::new();
        loop {
            for seen in world.observe() {
                let known = reported.get(&seen.name);
                let is_old = known.is_none_or(|(known, at)| *known != seen || at.elapsed() >= REPEAT_EVERY);
                if is_old && report(&engine, &seen).await {
                    reported.insert(seen.name.clone(), (seen, Instant::now()));
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })
}

/// Whether the report was accepted; a report of a host that does not exist (yet) is repeated.
async fn report(engine: &Engine, seen: &SeenHost) -> bool {
    let report = Report {
        state: seen.failure_state,
        source: "demo-monitor".to_owned(),
        observed_at: now(),
        last_seen_at: None,
        silent_since: None,
        boot: seen.boot_id.clone().map(|id| Boot {
            id: Some(id),
            booted_at: None,
        }),
    };
    match engine
        .report_failure_state(&seen.name, report, &Context::own("demo-monitor"))
        .await
    {
        Ok(_) => true,
        Err(error) => {
            tracing::debug!(
                host = seen.name,
                error = &error as &dyn std::error::Error,
                "a report was refused"
            );
            false
        }
    }
}

/// Prints the first steps with the demonstration.
pub fn say_what_to_try(data_dir: &Path, url: &str, page: &str, simulators: &Handle) -> Result<(), CliError> {
    let (program, find) = (program(), find_commands(data_dir));
    let simulated = simulators.url();
    write!(
        std::io::stdout(),
        "
Ringfence runs on {url} (API description: {url}/docs), with its data in {data}.
Six simulated hosts are there. The BMC of sim-3 lies, that of sim-4 is slow, that of sim-5 never answers.

Open the page and break a host there; this link signs in once:

  {page}

Or in another terminal, try:

  R={program}
{find}  $R host list
  # sim-1 hangs: it still runs and writes, and does not answer
  curl -X PUT {simulated}/hosts/sim-1 -H 'Content-Type: application/json' -d '{{\"condition\":\"hung\"}}'
  # its monitor sees that within a second
  sleep 2
  $R host fence sim-1 --reason 'no heartbeat' --wait
  $R host gates sim-1
  # take it back
  $R host rejoin sim-1 --reason 'checked' --wait
  # then sim-3: power cannot be proven, storage and network are
  curl -X PUT {simulated}/hosts/sim-3 -H 'Content-Type: application/json' -d '{{\"condition\":\"hung\"}}'
  sleep 2
  $R host fence sim-3 --reason 'no heartbeat' --wait
  $R event tail --after 0

Stop it with Ctrl-C; started again, even after kill -9, it goes on where it was.

",
        data = data_dir.display()
    )?;
    Ok(())
}
