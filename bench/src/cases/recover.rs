//! From the news that a host is dead to all of its servers ACTIVE on another: Ringfence and Masakari on the same Nova, each beside the time
//! that Nova takes by itself.

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

const NAME: &str = crate::report::RECOVER;
/// Where whoever runs the figures has put what an OpenStack is made of.
const PARTS: &str = "RINGFENCE_TEST_OPENSTACK_PARTS";
/// Servers of the host that dies, and rounds, of which the median is told. Few servers end with the slowest of them, which is
/// another matter each time.
const SERVERS_AND_ROUNDS: [(usize, usize); 2] = [(5, 7), (20, 3)];
/// Servers that are moved at a time: what a segment of Ringfence's has by default.
const AT_ONCE: usize = 4;
/// It sleeps no longer than it has to, and moves as many servers at a time as Ringfence does.
const MASAKARI_AT_ITS_FASTEST: MasakariSettings = MasakariSettings {
    wait_s: 0,
    at_once: 4,
};
const MOST_TIMES: f64 = 1.15;

/// Measures on all of these grounds, in turns with what they are measured beside.
pub async fn measure(case: &Case, grounds: &[Ground], report: &mut Report) -> Result<(), BenchError> {
    let Some(parts) = std::env::var_os(PARTS) else {
        report.skip("recover: there is no OpenStack to measure beside");
        return Ok(());
    };
    tell("starting OpenStack with Masakari");
    let mut rig = block_in_place(|| Rig::start(Path::new(&parts), MASAKARI_AT_ITS_FASTEST))?;
    // The first evacuation of a cloud is not like the others.
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

/// What one number of servers took, in seconds.
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

    /// One of everything, each on hosts that nobody has used. Who comes first changes with each round: what the one before has left behind
    /// is still being cleaned up.
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

    /// What stands beside.
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
                    "wait_period_after_service_update 0, 4 servers at a time; told when Nova took the host for down by itself, \
                     since it does not force it down; it fences nothing",
                )
        })?;
        report.add_summary(&self.masakari_told_early, |s| {
            self.figure("Masakari at its fastest, told at once", s)
                .over("Nova alone", floor.median)
                .note("told as early as Ringfence: Nova waits for the dead host before it answers that it is disabled")
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
            figure("Ringfence, its fence by IPMI in it", s).over("Nova alone", floor_s)
        })?;
        report.add_summary(&fences, |s| figure("of which: the fence", s))?;
        report.add_summary(&without, |s| {
            let times = s.median / floor_s;
            let wanted = format!("{} servers, over Nova alone", self.servers);
            figure("Ringfence less its fence", s)
                .over("Nova alone", floor_s)
                .target(Target::at_most(&wanted, times, MOST_TIMES, "times"))
                .note("evacuation.at_once is 4, the default; told at once when nova-compute is dead, and Nova believes it alive")
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

/// Masakari with the settings that it comes with.
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
