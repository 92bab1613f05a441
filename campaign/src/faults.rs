//! Carries out the script of faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_core::Resource;
use ringfence_simulators::{Fault as DeviceFault, FaultKind};
use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep;

use crate::broker::Mischief;
use crate::error::CampaignError;
use crate::field::Field;
use crate::peers::Peers;
use crate::process::Process;
use crate::proxy::Way;
use crate::rng::Dice;
use crate::script::{Astray, Fault, Leg, Script, Trouble, What, host_name, slow_ms};

/// Delay of a slow connection.
const SLOW_WAY: Duration = Duration::from_millis(150);

/// Carries out the script to its end, or to the first violation. Returns the number of faults of each kind that took effect.
pub async fn play(field: &Arc<Field>, script: &Script) -> BTreeMap<&'static str, u64> {
    let begun = Instant::now();
    let mut under_way = JoinSet::new();
    let mut played = BTreeMap::new();
    let mut count = |ended: Result<Option<&'static str>, JoinError>| {
        if let Ok(Some(kind)) = ended {
            *played.entry(kind).or_default() += 1;
        }
    };
    for (number, fault) in script.faults.iter().enumerate() {
        sleep(Duration::from_millis(fault.at_ms).saturating_sub(begun.elapsed())).await;
        if field.is_violated() {
            break;
        }
        field.log.fault(&format!("{number}: {}", script.line(fault)));
        under_way.spawn(happened(Arc::clone(field), fault.clone(), number));
        while let Some(ended) = under_way.try_join_next() {
            count(ended);
        }
    }
    while let Some(ended) = under_way.join_next().await {
        count(ended);
    }
    played
}

/// The kind of the fault, if it took effect.
async fn happened(field: Arc<Field>, fault: Fault, number: usize) -> Option<&'static str> {
    match happen(&field, &fault, number).await {
        Ok(()) => Some(fault.kind()),
        Err(error) => {
            field.log.note(&format!("fault {number} had no effect: {error}"));
            None
        }
    }
}

async fn happen(field: &Field, fault: &Fault, number: usize) -> Result<(), CampaignError> {
    let lasts = Duration::from_millis(fault.lasts_ms);
    let process = |number: &usize| field.plant.processes.get(*number);
    match &fault.what {
        What::Device(host, resource, kind) => misbehave(field, *host, *resource, *kind, fault).await?,
        What::Report(host, astray) => lead_astray(field, *host, *astray, lasts),
        What::SwitchedOn(host) => field.truth.switch_on(&host_name(*host))?,
        What::Killed(number) => struck(process(number).is_some_and(|p| p.kill(lasts / 2)))?,
        What::Halted(number) => struck(process(number).is_some_and(|p| p.halt(lasts)))?,
        What::DiskFull(number) => struck(process(number).is_some_and(|p| p.fill_disk(lasts)))?,
        What::ClockSet(by_ms) => set_clock(field, *by_ms).await?,
        What::MachineApart(number, by_ms) => {
            if let Some(process) = process(number) {
                process.clock.set_apart(*by_ms);
                process.clock.follow(&field.clock)?;
            }
        }
        What::EngineApart(number, by_ms) => {
            if let (Some(process), Some(peers)) = (process(number), &field.plant.peers) {
                peers.set_clock(&process.name, *by_ms).await?;
            }
        }
        What::Way(number, leg, trouble) => {
            process(number)
                .into_iter()
                .for_each(|p| spoil_way(p, *leg, *trouble, lasts));
        }
        What::DatabaseRestarts | What::BrokerRestarts | What::Message(_) => {
            if let Some(peers) = &field.plant.peers {
                happen_to_peers(field, peers, &fault.what, number).await?;
            }
        }
    }
    Ok(())
}

/// An error for a process that did not run.
fn struck(ran: bool) -> Result<(), CampaignError> {
    ran.then_some(()).ok_or_else(|| CampaignError::Unexpected {
        what: "a process that runs".to_owned(),
        found: "none".to_owned(),
    })
}

async fn happen_to_peers(
    field: &Field,
    peers: &Peers,
    what: &What,
    number: usize,
) -> Result<(), CampaignError> {
    match what {
        What::DatabaseRestarts => peers.restart_postgres().await,
        What::BrokerRestarts => peers.restart_rabbit().await,
        What::Message(mischief) => play_on(field, peers, *mischief, number).await,
        _ => Ok(()),
    }
}

async fn play_on(
    field: &Field,
    peers: &Peers,
    mischief: Mischief,
    number: usize,
) -> Result<(), CampaignError> {
    let mut dice = Dice::of(field.options.seed, 1_000_000 + number as u64);
    let played = peers.tap.play(mischief, &mut dice).await?;
    let played = played.ok_or_else(|| CampaignError::Unexpected {
        what: format!("a message for {mischief:?}"),
        found: "none".to_owned(),
    })?;
    field.log.note(&format!("message {mischief:?}: {played}"));
    Ok(())
}

async fn misbehave(
    field: &Field,
    host: usize,
    resource: Resource,
    kind: FaultKind,
    fault: &Fault,
) -> Result<(), CampaignError> {
    let name = host_name(host);
    let delay_ms = (kind == FaultKind::Slow).then(|| slow_ms(fault));
    let misbehaves = DeviceFault::new(kind, None, delay_ms)?;
    field
        .log
        .host(&name, &format!("device {}: {kind:?}", resource.as_str()));
    field.truth.set_fault(&name, resource, Some(misbehaves))?;
    sleep(Duration::from_millis(fault.lasts_ms)).await;
    field
        .log
        .host(&name, &format!("device {}: behaves", resource.as_str()));
    Ok(field.truth.set_fault(&name, resource, None)?)
}

fn lead_astray(field: &Field, host: usize, astray: Astray, lasts: Duration) {
    let mut reports = field.astray.lock();
    reports.insert(host_name(host), (astray, Instant::now() + lasts));
}

/// Sets the clocks of the database, of the machines and of the monitor together.
async fn set_clock(field: &Field, by_ms: i64) -> Result<(), CampaignError> {
    field.clock.step(by_ms);
    if let Some(peers) = &field.plant.peers {
        peers.set_clock("all", field.clock.off_ms()).await?;
    }
    field.plant.follow(&field.clock)
}

fn spoil_way(process: &Process, leg: Leg, trouble: Trouble, lasts: Duration) {
    let way = match trouble {
        Trouble::Cut => Way::Cut,
        Trouble::Deaf => Way::Deaf,
        Trouble::Slow => Way::Slow(SLOW_WAY),
    };
    let proxy = match leg {
        Leg::Front => process.front.as_ref().map(|(_, front)| front),
        Leg::Database => process.database.as_ref(),
        Leg::Broker => process.broker.as_ref(),
    };
    if let Some(proxy) = proxy {
        proxy.set(way, lasts);
    }
}
