//! All of it.

use ringfence_core::{
    Claim, Dispatch, EngineTime, Finding, Host, HostState, Operation, Record, Report, SharedSuspensions,
    Suspension, TaskResult, Timestamp,
};
use ringfence_world::search::{Letter, Word};
use ringfence_world::{Job, KdumpHeard, Leading, Process, World};

use super::packer::{Matters, may_be_after};
use super::{Packer, host, operation, site};
use crate::{Chance, Life, Wrong};

/// A worker's answer is fresh for so long, for the judge of moves.
const FRESH_MS: i64 = 3_400;

/// All that matters of a state.
#[must_use]
pub fn pack(life: &Life) -> Vec<u8> {
    let Life {
        world,
        // Never changes in a configuration.
        ears: _,
        letters,
        words,
        acted,
        offset,
        left,
        was_taken_back,
        wrong,
        configuration: _,
    } = life;
    let mut packer = packer(life);
    let p = &mut packer;
    self::world(p, world, acted);
    p.list(letters.iter(), letter);
    p.list(words.iter(), |p, one| word(p, one, &world.state.host));
    p.signed(offset.num_milliseconds());
    for left in left.all() {
        p.byte(*left);
    }
    p.flag(*was_taken_back);
    p.some(wrong.as_ref(), |p, wrong| {
        p.byte(match wrong {
            Wrong::Violation(violation) => *violation as u8,
            Wrong::Opposites => 100,
            Wrong::Forgotten(_) => 101,
            Wrong::Endless(_) => 102,
        });
    });
    packer.into_bytes()
}

/// What matters of what the rules know: on it alone depends what time alone brings.
#[must_use]
pub fn pack_host(life: &Life) -> Vec<u8> {
    let mut packer = packer(life);
    state(&mut packer, &life.world.state);
    packer.some(life.world.wake_at, Packer::at);
    packer.into_bytes()
}

fn packer(life: &Life) -> Packer {
    let setting = &life.configuration.setting;
    let chances = &life.configuration.chances;
    let may = |chance| chances.left(chance) > 0;
    let world = &life.world;
    // A record has when it was written, and what is of no account otherwise.
    let forgets = may(Chance::Forget) || may(Chance::TakeOver);
    let matters = Matters {
        clocks: may(Chance::Clock) || may(Chance::Engine) || forgets,
        watchdog: world.site.asks_first,
        kdump: may(Chance::Send),
        automatic: setting.policy.fencing.automatic || forgets,
        words: [Chance::Say, Chance::Lie, Chance::SayLate, Chance::Write]
            .into_iter()
            .any(may),
        dates: setting.sources.iter().any(|source| source.dates_boots),
    };
    Packer::new(world.now, world.real, world.state.host.generation, matters)
}

fn state(p: &mut Packer, state: &HostState) {
    let HostState {
        host,
        operation,
        // Never changes in a configuration.
        policy: _,
        shared,
        clock_set_at,
    } = state;
    let SharedSuspensions { segment, everything } = shared;
    for suspension in [segment, everything, &host.suspension] {
        p.some(suspension.as_ref(), |p, one| {
            self::suspension(p, one, operation.as_ref())
        });
    }
    self::host::host(p, host);
    p.some(operation.as_ref(), |p, live| {
        operation::operation(p, live, &host.in_flight);
    });
    p.some(*clock_set_at, Packer::at);
}

/// Of its beginning only what does not stand still for it matters.
fn suspension(p: &mut Packer, suspension: &Suspension, live: Option<&Operation>) {
    let Suspension {
        since,
        until,
        // For people.
        by: _,
        reason: _,
    } = suspension;
    p.flag(live.is_some_and(|live| live.despite.contains(since)));
    p.some(*until, Packer::at);
}

fn world(p: &mut Packer, world: &World, acted: &[uuid::Uuid]) {
    let World {
        state,
        plan: _,
        // What all times are seen from.
        now: _,
        real: _,
        wake_at,
        sent,
        jobs,
        results,
        datagrams,
        kdump_heard,
        site,
        cloud,
        trace: _,
        log: _,
        restarts: _,
        records: _,
        is_sloppy: _,
        // Of the agent alone, which says nothing but UP.
        last_seen: _,
        violation,
        records_kept,
        is_hearsay,
        last_decided,
        told_alive_at,
        told_at,
        told_boot,
        queues: _,
        others: _,
        opinions: _,
        ids: _,
    } = world;
    self::state(p, state);
    p.some(records_kept.as_ref(), |p, leading| {
        self::leading(p, leading, state)
    });
    p.some(*wake_at, Packer::at);
    p.list(sent.iter(), dispatch);
    p.list(jobs.iter(), |p, one| {
        job(p, one, acted.contains(&one.claim.claim_id))
    });
    p.list(results.iter(), result);
    p.list(datagrams.iter(), |p, sent_at| p.really(*sent_at));
    p.list(kdump_heard.iter(), heard);
    self::site::site(p, site, *told_alive_at);
    self::site::cloud(p, cloud);
    p.some(*violation, |p, violation| p.byte(violation as u8));
    p.flag(*is_hearsay);
    if p.matters.clocks {
        p.at(*last_decided);
    }
    told(p, *told_at);
    p.number(u64::from(*told_boot));
}

/// The judge asks how fresh it is, for as long as it is.
fn told(p: &mut Packer, told_at: Timestamp) {
    let age_ms = p.real_ms_since(told_at).min(FRESH_MS + 1);
    p.signed(age_ms);
}

fn leading(p: &mut Packer, leading: &Leading, state: &HostState) {
    let Leading {
        // The process that decides has written it, or begun with it.
        record: _,
        writer: _,
        process: _,
        known,
        former,
    } = leading;
    p.flag(*known == Record::of(state));
    p.some(former.as_deref(), |p, former| {
        let Process {
            process: _,
            known,
            state,
            sent,
            wake_at,
        } = former;
        p.flag(*known == Record::of(state));
        self::state(p, state);
        p.list(sent.iter(), dispatch);
        p.some(*wake_at, Packer::at);
    });
}

/// The rest follows from its attempt.
fn dispatch(p: &mut Packer, dispatch: &Dispatch) {
    let Dispatch {
        host_id: _,
        host: _,
        attempt,
        generation: _,
        job: _,
        claim_by: _,
    } = dispatch;
    p.attempt(*attempt);
}

fn job(p: &mut Packer, job: &Job, has_acted: bool) {
    let Job {
        claim,
        work,
        granted_at,
        before,
        stops_at,
    } = job;
    self::claim(p, claim);
    match work {
        ringfence_core::Job::Fencing { kind: _, method } => p.text(&method.name),
        ringfence_core::Job::Step { step, at: _, movable } => {
            p.byte(*movable as u8);
            p.some(step.workload(), |p, workload| p.text(&workload.id))
        }
    }
    p.really(*granted_at);
    p.some(*before, |p, before| p.byte(before as u8));
    p.really(*stops_at);
    p.flag(has_acted);
}

fn claim(p: &mut Packer, claim: &Claim) {
    let Claim {
        host_id: _,
        attempt,
        generation,
        kind,
        worker: _,
        claim_id,
    } = claim;
    p.attempt(*attempt);
    p.generation(*generation);
    p.kind(*kind);
    p.id(*claim_id);
}

fn result(p: &mut Packer, result: &TaskResult) {
    let TaskResult {
        claim,
        outcome,
        observation,
        finding,
        detail: _,
    } = result;
    self::claim(p, claim);
    p.byte(*outcome as u8);
    p.some(observation.as_ref(), |p, observation| {
        p.number(observation.after_ms);
        operation::observation(p, observation);
    });
    p.some(finding.as_ref(), |p, finding| match finding {
        Finding::Away => p.byte(3),
        Finding::Workloads(found) => p.list(found.iter(), |p, workload| p.text(&workload.id)),
        Finding::Move(report) => {
            p.some(report.to.as_deref(), Packer::text);
            p.flag(report.no_room);
            p.flag(report.unanswered);
        }
    });
}

fn heard(p: &mut Packer, heard: &KdumpHeard) {
    let KdumpHeard {
        after: EngineTime { at, clock_set_at },
        // What no worker knows.
        sent_at: _,
    } = heard;
    p.at(*at);
    p.some(*clock_set_at, Packer::at);
}

fn word(p: &mut Packer, word: &Word, host: &Host) {
    let Word {
        generation: _,
        said_at,
        is_true,
    } = word;
    p.at(*said_at);
    p.flag(*is_true);
    // The host is known since before the word, or not, for good.
    p.flag(host.created_at > *said_at);
    p.some(host.released_at, |p, at| p.flag(may_be_after(at, *said_at)));
}

fn letter(p: &mut Packer, letter: &Letter) {
    let Letter {
        report:
            Report {
                state,
                source,
                observed_at,
                last_seen_at,
                silent_since,
                boot,
            },
        boot: number,
        heard_at,
    } = letter;
    p.byte(*state as u8);
    p.text(source);
    p.at(*observed_at);
    p.some(*last_seen_at, Packer::at);
    p.some(*silent_since, Packer::at);
    p.some(boot.as_ref(), |p, boot| {
        p.some(boot.id.as_deref(), Packer::text);
        p.some(boot.booted_at, Packer::at);
    });
    p.some(*number, |p, number| p.number(u64::from(number)));
    p.some(*heard_at, Packer::really);
}
