//! What is known of a host.

use ringfence_core::*;

use super::Packer;

pub(super) fn host(p: &mut Packer, host: &Host) {
    let Host {
        // Never changes in a configuration.
        id: _,
        name: _,
        segment_id: _,
        backend: _,
        cloud: _,
        known_as: _,
        host_type: _,
        labels: _,
        zone: _,
        parameters: _,
        sources: seen,
        failure_state,
        // For people.
        failure_source: _,
        failure_observed_at: _,
        failure_since,
        // No configuration has any.
        conditions: _,
        // With those that it shares.
        suspension: _,
        // No world has a rule for it.
        flapping: _,
        alarms: _,
        braked_at: _,
        kdump,
        // What all others are seen from.
        generation,
        fence,
        is_silence_answered,
        released_at,
        last_off_at,
        applied: Applied {
            fencing,
            marked_down_by,
        },
        in_flight,
        event_sequence: _,
        revision: _,
        created_at,
        updated_at,
    } = host;
    p.byte(*failure_state as u8);
    sources(p, seen);
    // A host's first generation is told from later ones by a person's word for the one before.
    p.flag(generation.0 == 0);
    p.some(fence.as_ref(), self::fence);
    if p.matters.automatic {
        p.flag(*is_silence_answered);
        p.some(*failure_since, Packer::at);
    }
    if p.matters.automatic || p.matters.watchdog {
        p.some(*released_at, Packer::at);
    } else if p.matters.words {
        // A word that is said from now on is of another time, unless that is so recent that two clocks cannot tell.
        p.some(released_at.filter(|at| p.is_recent(*at)), Packer::at);
    }
    if p.matters.words {
        p.some(Some(*created_at).filter(|at| p.is_recent(*at)), Packer::at);
    }
    p.some(*last_off_at, Packer::at);
    p.some(kdump.as_ref(), |p, kdump| {
        let Kdump {
            since,
            last_at,
            is_over,
        } = kdump;
        p.at(*since);
        p.at(*last_at);
        p.flag(*is_over);
    });
    p.list(fencing.iter(), self::fencing);
    p.some(*marked_down_by, Packer::attempt);
    p.list(in_flight.iter(), self::in_flight);
    if p.matters.clocks {
        p.at(*updated_at);
    }
}

fn sources(p: &mut Packer, sources: &Sources) {
    // Takes `Sources` apart in its own crate, where its fields are known.
    let (alive_by, alive_reported_at) = sources.struck_off();
    p.some(alive_by, Packer::at);
    p.some(alive_reported_at, Packer::at);
    for (name, seen) in sources.iter() {
        p.text(name);
        source(p, seen);
    }
}

fn source(p: &mut Packer, source: &Source) {
    let Source {
        state,
        observed_at,
        reported_at,
        late_ms,
        alive_by,
        alive_at,
        alive_reported_at,
        // No decision reads it: it is counted over all hosts.
        up_since: _,
        silence,
        boots,
    } = source;
    p.byte(*state as u8);
    p.at(*observed_at);
    p.at(*reported_at);
    p.signed(*late_ms);
    p.some(*alive_by, Packer::at);
    // A source that is known from a record alone has heard the host long ago, however late it is now.
    let long_ago = Timestamp::UNIX_EPOCH;
    p.flag(*alive_at == Some(long_ago));
    p.some(alive_at.filter(|at| *at != long_ago), Packer::at);
    p.some(*alive_reported_at, Packer::at);
    p.some(*silence, |p, silence| {
        let Silence {
            since,
            watched_from,
            is_dated,
        } = silence;
        p.at(since);
        p.at(watched_from);
        p.flag(is_dated);
    });
    p.list(boots.iter(), |p, seen| {
        let SeenBoot {
            boot: Boot { id, booted_at },
            first_seen,
            last_seen,
        } = seen;
        p.some(id.as_deref(), Packer::text);
        p.some(*booted_at, Packer::at);
        p.at(*first_seen);
        p.at(*last_seen);
    });
}

fn fence(p: &mut Packer, fence: &Fence) {
    let Fence {
        generation,
        operation_id: _,
        at,
        // Those of the plan.
        sets: _,
        proofs,
        off_until,
        is_evacuation_begun,
        // Nothing is decided by it: the host is looked at.
        is_emptied: _,
    } = fence;
    p.generation(*generation);
    p.at(*at);
    p.list(proofs.iter(), proof);
    p.some(*off_until, Packer::at);
    p.flag(*is_evacuation_begun);
}

pub(super) fn proof(p: &mut Packer, proof: &Proof) {
    let Proof {
        kind,
        source: _,
        observed_at,
        read_at,
        claimed_at,
        settle_s,
        operation_id: _,
        generation: _,
        detail: _,
        ended,
    } = proof;
    p.byte(*kind as u8);
    p.at(*read_at);
    p.some(*claimed_at, Packer::at);
    p.number(u64::from(*settle_s));
    // It counts from then on, or does already; a clock that is set makes it count anew.
    let settles = p.matters.clocks || p.is_ahead(proof.settled_at(None));
    p.some(settles.then_some(*observed_at), Packer::at);
    p.some(ended.as_ref(), |p, ended| {
        let Ended { undoing, at } = ended;
        p.byte(match undoing {
            Undoing::Claimed {
                kind: _,
                generation: _,
            } => 0,
            Undoing::StartedAgain => 1,
            Undoing::SignOfLife {
                source: _,
                observed_at: _,
            } => 2,
        });
        p.at(*at);
    });
}

fn fencing(p: &mut Packer, applied: &AppliedFencing) {
    let AppliedFencing {
        kind,
        method,
        attempt,
        by,
        is_shown,
    } = applied;
    p.byte(*kind as u8);
    // A configuration has one method of a name.
    p.text(&method.name);
    p.attempt(*attempt);
    p.at(*by);
    p.flag(*is_shown);
}

fn in_flight(p: &mut Packer, f: &InFlight) {
    let InFlight {
        attempt,
        generation,
        kind,
        method,
        claim_id,
        until,
        only_looks,
        lasts_ms,
    } = f;
    p.flag(*only_looks);
    p.attempt(*attempt);
    p.generation(*generation);
    p.kind(*kind);
    p.some(*method, Packer::method);
    p.some(*claim_id, Packer::id);
    p.at(*until);
    p.some(*lasts_ms, Packer::number);
}
