//! From the news that a host is dead until all of its servers are ACTIVE on another host: Ringfence and Masakari on one Nova, each compared
//! with the time that Nova takes by itself.

mod alone;
mod masakari;
mod pair;
mod rig;
mod ringfence;

use std::path::Path;

use ringfence_lab::MasakariSettings;
use ringfence_tests::{Ground, tell};
use tokio::task::block_in_place;

use self::alone::Alone;
use self::masakari::Told;
use self::pair::Pair;
use self::rig::Rig;
use self::ringfence::Recovery;
use super::Case;
use crate::error::BenchError;
use crate::report::{Figure, Report, Target, ground_name};
use crate::statistics::Summary;

const NAME: &str = "recover";
/// The variable with the folder of OpenStack's parts.
const PARTS: &str = "RINGFENCE_TEST_OPENSTACK_PARTS";
/// Servers of the host that dies, and rounds; the median of the rounds is reported. With few servers the end depends on the slowest one,
/// which differs each time.
const SERVERS_AND_ROUNDS: [(usize, usize); 2] = [(5, 7), (20, 3)];
/// Servers that are moved at a time: the default of Ringfence's segments.
const AT_ONCE: usize = 4;
/// Masakari waits no longer than it has to, and moves as many servers at a time as Ringfence does.
const MASAKARI_AT_ITS_FASTEST: MasakariSettings = MasakariSettings {
    wait_s: 0,
    at_once: 4,
};
const MOST_TIMES: f64 = 1.15;

/// Measures on all of these grounds, in turns with Nova alone and Masakari.
pub async fn measure(case: &Case, grounds: &[Ground], report: &mut Report) -> Result<(), BenchError> {
    let Some(parts) = std::env::var_os(PARTS) else {
        report.skip(NAME, "there is no OpenStack to measure on");
        return Ok(());
    };
    tell("starting OpenStack with Masakari");
    let mut rig = block_in_place(|| Rig::start(Path::new(&parts), MASAKARI_AT_ITS_FASTEST))?;
    // The first evacuation of a cloud differs from later ones.
    rig.with_pair(1, |pair| alone::recover(pair, AT_ONCE))?;
    for (servers, rounds) in SERVERS_AND_ROUNDS {
        let mut taken = Taken::new(servers, grounds);
        for round in 0..rounds {
            taken.take(&mut rig, round).await?;
        }
        taken.take_once(&mut rig)?;
        taken.report(report)?;
    }
    if case.is_full {
        as_it_comes(&mut rig, report)?;
    }
    Ok(())
}

/// The times for one number of servers, in seconds.
struct Taken {
    servers: usize,
    alone: Vec<Alone>,
    all_at_once: Vec<f64>,
    ringfence: Vec<(Ground, Vec<Recovery>)>,
    masakari: Vec<f64>,
    masakari_told_early: Vec<f64>,
}

impl Taken {
    fn new(servers: usize, grounds: &[Ground]) -> Self {
        Self {
            servers,
            alone: vec![],
            all_at_once: vec![],
            ringfence: grounds.iter().map(|&ground| (ground, vec![])).collect(),
            masakari: vec![],
            masakari_told_early: vec![],
        }
    }

    /// Takes one measurement of each kind, each on fresh hosts. The order changes with each round, since the remains of the one before are
    /// still being cleaned up.
    async fn take(&mut self, rig: &mut Rig, round: usize) -> Result<(), BenchError> {
        let grounds = self.ringfence.iter().map(|(ground, _)| Some(*ground));
        let mut turns: Vec<Option<Ground>> = grounds.chain([None]).collect();
        let first = round % turns.len();
        turns.rotate_left(first);
        for turn in turns {
            match turn {
                Some(ground) => self.take_ringfence(rig, ground).await?,
                None => self.take_alone(rig)?,
            }
        }
        let masakari = rig.with_pair(self.servers, |pair| {
            masakari::recover(pair, Told::OnceNovaHasSeenIt)
        })?;
        tell(&format!("{} servers, Masakari: {masakari:.2} s", self.servers));
        self.masakari.push(masakari);
        Ok(())
    }

    fn take_alone(&mut self, rig: &mut Rig) -> Result<(), BenchError> {
        let servers = self.servers;
        let alone = rig.with_pair(servers, |pair| alone::recover(pair, AT_ONCE))?;
        tell(&format!("{servers} servers, Nova alone: {:.2} s", alone.total_s));
        self.alone.push(alone);
        Ok(())
    }

    async fn take_ringfence(&mut self, rig: &mut Rig, ground: Ground) -> Result<(), BenchError> {
        let servers = self.servers;
        let pair = block_in_place(|| rig.pair(servers))?;
        let recovery = Box::pin(ringfence::recover(&pair, ground)).await?;
        block_in_place(|| pair.remove());
        let (name, total_s) = (ground_name(ground), recovery.total_s);
        tell(&format!("{servers} servers, Ringfence, {name}: {total_s:.2} s"));
        if let Some((_, taken)) = self.ringfence.iter_mut().find(|(one, _)| *one == ground) {
            taken.push(recovery);
        }
        Ok(())
    }

    /// Takes the measurements that are compared with.
    fn take_once(&mut self, rig: &mut Rig) -> Result<(), BenchError> {
        let servers = self.servers;
        let alone = rig.with_pair(servers, |pair| alone::recover(pair, servers))?;
        self.all_at_once.push(alone.total_s);
        self.masakari_told_early
            .push(rig.with_pair(servers, |pair| masakari::recover(pair, Told::AtOnce))?);
        Ok(())
    }

    fn report(&self, report: &mut Report) -> Result<(), BenchError> {
        let Some(floor) = Summary::of(&totals(&self.alone)) else {
            return Ok(());
        };
        let each: Vec<f64> = self.alone.iter().flat_map(|one| one.each_s.clone()).collect();
        report.add(self.figure("floor: Nova alone, forced down and evacuated 4 at a time", floor))?;
        report.add_summary(&each, |s| {
            self.figure("floor: one server, Nova alone, 4 at a time", s)
        })?;
        report.add_summary(&self.all_at_once, |s| {
            self.figure("Nova alone, all at once", s)
                .over("4 at a time", floor.median)
        })?;
        for (ground, taken) in &self.ringfence {
            self.report_ringfence(*ground, taken, floor.median, report)?;
        }
        report.add_summary(&self.masakari, |s| {
            self.figure("Masakari at its fastest", s)
                .over("Nova alone", floor.median)
                .note(
                    "wait_period_after_service_update 0, 4 servers at a time; notified when Nova took the host for down by itself, \
                     since it does not force it down; it fences nothing",
                )
        })?;
        report.add_summary(&self.masakari_told_early, |s| {
            self.figure("Masakari at its fastest, notified at once", s)
                .over("Nova alone", floor.median)
                .note("notified as early as Ringfence: Nova waits for the dead host before it answers that it is disabled")
        })
    }

    fn report_ringfence(
        &self,
        ground: Ground,
        taken: &[Recovery],
        floor_s: f64,
        report: &mut Report,
    ) -> Result<(), BenchError> {
        let figure = |what: &str, summary| self.figure(what, summary).on(ground);
        let totals: Vec<f64> = taken.iter().map(|one| one.total_s).collect();
        let fences: Vec<f64> = taken.iter().map(|one| one.fence_s).collect();
        let without: Vec<f64> = taken.iter().map(|one| one.total_s - one.fence_s).collect();
        report.add_summary(&totals, |s| {
            figure("Ringfence, with its fence by IPMI", s).over("Nova alone", floor_s)
        })?;
        report.add_summary(&fences, |s| figure("of which: the fence", s))?;
        report.add_summary(&without, |s| {
            let times = s.median / floor_s;
            let wanted = format!("{} servers, over Nova alone", self.servers);
            figure("Ringfence less its fence", s)
                .over("Nova alone", floor_s)
                .target(Target::at_most(&wanted, times, MOST_TIMES, "times"))
                .note("evacuation.at_once is 4, the default; notified at once when nova-compute is dead, while Nova believes it alive")
        })?;
        for (index, step) in ringfence::STEPS.iter().enumerate() {
            let steps: Vec<f64> = taken.iter().map(|one| one.steps_s[index]).collect();
            let what = format!("of which: {step}");
            report.add_summary(&steps, |s| figure(&what, s))?;
        }
        let each: Vec<f64> = taken.iter().flat_map(|one| one.each_s.clone()).collect();
        report.add_summary(&each, |s| figure("one server, Ringfence", s))
    }

    fn figure(&self, what: &str, summary: Summary) -> Figure {
        Figure::new(NAME, format!("{what}, {} servers", self.servers), "s", summary)
    }
}

/// Masakari with its default settings.
fn as_it_comes(rig: &mut Rig, report: &mut Report) -> Result<(), BenchError> {
    rig.change_masakari(MasakariSettings::DEFAULT)?;
    for (servers, _) in SERVERS_AND_ROUNDS {
        let taken = rig.with_pair(servers, |pair| masakari::recover(pair, Told::OnceNovaHasSeenIt))?;
        let what = format!("Masakari at its defaults, {servers} servers");
        let figure = Figure::new(NAME, what, "s", Summary::once(taken));
        report.add(figure.note("it sleeps 180 s before it begins"))?;
    }
    Ok(())
}

fn totals(taken: &[Alone]) -> Vec<f64> {
    taken.iter().map(|one| one.total_s).collect()
}
