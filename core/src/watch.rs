//! What an observer concludes from what a backend says of its hosts.
//!
//! A host gives signs of life, and the backend writes down when. How long a host has been silent is told by the backend's own signs beside
//! it, by one clock; whether anything moves at all is told by ours. A backend whose own services are silent says nothing of its hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::TimeDelta;

use crate::{BootSign, FailureState, Labels, ReportedCondition, Source, Timestamp};

/// What a backend says of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// The host, as its backend calls it.
    pub host: String,
    /// Its last sign of life, by the backend's clock.
    pub last: Option<Timestamp>,
    /// Whether the backend itself takes it for alive.
    pub is_up: bool,
    /// Whether the backend was told to take it for down, so that what it takes it for says nothing.
    pub is_marked_down: bool,
    /// What administrators have set. A backend that writes that down as a sign of life shows one of a host that is dead.
    pub settings: String,
    /// What the host has written down of its present boot, where the backend keeps that.
    pub boot: Option<BootSign>,
    /// The group of hosts to which the backend says that it belongs: the type of a host that is added for it.
    pub host_type: Option<String>,
    /// The labels that the backend gives it, of those that matter for its failure domains; `None` where the backend gives none.
    pub labels: Option<Arc<Labels>>,
    /// Whether the backend has it on record as one of Ringfence's hosts, where it keeps that.
    pub is_on_record: bool,
    /// Whether it bears a mark of Ringfence that keeps workloads off it.
    pub is_kept_off: bool,
    /// What the backend says is wrong with it, or right.
    pub conditions: Arc<[ReportedCondition]>,
}

/// One answer of a backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Poll {
    /// Of all hosts.
    pub hosts: Vec<Sign>,
    /// The newest sign of life of those services without which no host could give one.
    pub own: Option<Timestamp>,
}

/// What is concluded of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// How it is.
    pub state: FailureState,
    /// When that showed, by our clock: for a host that is UP, a moment that its last sign of life came after.
    pub observed_at: Timestamp,
    /// For a host that is silent: a moment that its last sign of life came after.
    pub last_seen_at: Option<Timestamp>,
    /// For a host that is silent: since when no sign of life has come for certain.
    pub silent_since: Option<Timestamp>,
    /// Whether a sign of life came, and one is not enough to call it UP.
    pub stirs: bool,
}

impl Sighting {
    pub(crate) fn of(state: FailureState, observed_at: Timestamp) -> Self {
        Self {
            state,
            observed_at,
            last_seen_at: None,
            silent_since: None,
            stirs: false,
        }
    }
}

/// How often the signs of a host that was forced down have to be seen to come: an administrator may have changed something and changed
/// it back between two looks.
const MOVES_WHEN_FORCED_DOWN: u32 = 2;

/// What is known of the backend's clock counts for so long: then it is learnt anew.
const LEARNT_FOR: TimeDelta = TimeDelta::minutes(10);

/// How far the backend's clock is ahead of ours at most, and when that showed.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    by: TimeDelta,
    at: Timestamp,
}

impl Ahead {
    /// Of what is known and what has just been seen the least, unless the former is old.
    fn least(known: Option<Self>, seen: Option<TimeDelta>, now: Timestamp) -> Option<Self> {
        let is_good = |known: &Self| now - known.at < LEARNT_FOR && seen.is_none_or(|by| known.by < by);
        known
            .filter(is_good)
            .or(seen.map(|by| Self { by, at: now }))
            .or(known)
    }
}

/// A sign of life, and when it came by our clock.
#[derive(Clone, Debug)]
struct Seen {
    sign: Timestamp,
    /// When it was first seen.
    at: Timestamp,
    /// When it was not there yet.
    after: Timestamp,
    /// How often one was seen to come since we began, or since an administrator has set something.
    moves: u32,
    settings: String,
}

impl Seen {
    /// `after` is a moment that it came after if it is a new one.
    fn again(
        known: Option<&Self>,
        sign: Timestamp,
        settings: &str,
        after: Timestamp,
        now: Timestamp,
    ) -> Self {
        match known {
            Some(known) if known.sign == sign && known.settings == settings => known.clone(),
            Some(known) if known.settings == settings => Self {
                sign,
                at: now,
                after,
                moves: known.moves.saturating_add(1),
                settings: settings.to_owned(),
            },
            // It may be what was set, and not the host: then its last sign of life is the one before. (Ringfence itself sets that a host
            // which it has fenced is down.)
            Some(known) => Self {
                sign,
                at: now,
                after: known.after,
                moves: 0,
                settings: settings.to_owned(),
            },
            None => Self {
                sign,
                at: now,
                after,
                moves: 0,
                settings: settings.to_owned(),
            },
        }
    }
}

/// Watches the hosts of one backend.
#[derive(Clone, Debug)]
pub struct Watch {
    down_after: TimeDelta,
    own: Option<Seen>,
    hosts: BTreeMap<String, Seen>,
    /// Since when the backend answers without naming them.
    unnamed: BTreeMap<String, Timestamp>,
    answered_at: Option<Timestamp>,
    since: Option<Timestamp>,
    ahead: Option<Ahead>,
}

impl Watch {
    /// One that counts a host as UNREACHABLE after so long without a sign of life.
    #[must_use]
    pub fn new(down_after: TimeDelta) -> Self {
        Self {
            down_after,
            own: None,
            hosts: BTreeMap::new(),
            unnamed: BTreeMap::new(),
            answered_at: None,
            since: None,
            ahead: None,
        }
    }

    /// Takes an answer, or that there was none, and says how the hosts are that are on record, as far as it tells.
    ///
    /// Of a host that the backend does not name, and of all hosts while it does not answer, nothing can be told after a while: they are
    /// UNKNOWN then, and never UNREACHABLE.
    pub fn look(
        &mut self,
        answer: Option<&Poll>,
        on_record: &[&str],
        now: Timestamp,
    ) -> BTreeMap<String, Sighting> {
        let since = *self.since.get_or_insert(now);
        let unknown = Sighting::of(FailureState::Unknown, now);
        let Some(poll) = answer else {
            let is_lost = now - self.answered_at.unwrap_or(since) >= self.patience();
            let lost = on_record.iter().filter(|_| is_lost);
            return lost.map(|host| ((*host).to_owned(), unknown)).collect();
        };
        let mut sightings = self.take(poll, now);
        let known: BTreeSet<&str> = on_record.iter().copied().collect();
        sightings.retain(|host, _| known.contains(host.as_str()));
        sightings.extend(
            self.long_unnamed(poll, on_record, now)
                .map(|host| (host, unknown)),
        );
        sightings
    }

    fn take(&mut self, poll: &Poll, now: Timestamp) -> BTreeMap<String, Sighting> {
        let before = self.answered_at.replace(now);
        self.learn(poll, before, now);
        if let Some(sign) = poll.own {
            let after = self.after(self.own.is_some(), sign, before, now);
            self.own = Some(Seen::again(self.own.as_ref(), sign, "", after, now));
        }
        let known = std::mem::take(&mut self.hosts);
        for sign in &poll.hosts {
            if let Some(last) = sign.last {
                let known = known.get(&sign.host);
                let after = self.after(known.is_some(), last, before, now);
                let after = self.silent_from(known.is_some(), last, now).unwrap_or(after);
                let seen = Seen::again(known, last, &sign.settings, after, now);
                self.hosts.insert(sign.host.clone(), seen);
            }
        }
        let is_well = self.is_well(now);
        let conclude = |sign: &Sign| Some((sign.host.clone(), self.conclude(sign, is_well, now)?));
        poll.hosts.iter().filter_map(conclude).collect()
    }

    /// A sign that was not there at the look before came after that look: by so much at most is the backend's clock ahead of ours.
    fn learn(&mut self, poll: &Poll, before: Option<Timestamp>, now: Timestamp) {
        let own = self.own.as_ref().zip(poll.own);
        let hosts = poll.hosts.iter().filter_map(|sign| {
            let known = self.hosts.get(&sign.host)?;
            Some((known, sign.last?)).filter(|_| known.settings == sign.settings)
        });
        let new = own
            .into_iter()
            .chain(hosts)
            .filter(|(known, sign)| known.sign < *sign);
        let seen = before.and_then(|before| new.map(|(_, sign)| sign - before).min());
        self.ahead = Ahead::least(self.ahead, seen, now);
    }

    /// A moment by our clock that a sign came after: the look before, if that knew of an older one; by the backend's clock, as far as that
    /// is known; and it is not older than what counts as silence, or something else would be concluded.
    fn after(&self, is_known: bool, sign: Timestamp, before: Option<Timestamp>, now: Timestamp) -> Timestamp {
        let by_look = before.filter(|_| is_known);
        let by_clock = self.ahead.map(|ahead| sign - ahead.by);
        let known = by_look.max(by_clock).unwrap_or(now - self.down_after);
        known.min(now)
    }

    /// The moment by which the last sign had come of a host that is silent already when it is first looked at. By the backend's clock the
    /// sign is so much older than one of the backend's own, which has come by now. A later moment would be taken for a sign of life that
    /// nothing has given, and end the proofs of a fence.
    fn silent_from(&self, is_known: bool, sign: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let behind = self.own.as_ref()?.sign - sign;
        (!is_known && behind >= self.down_after).then(|| now - behind)
    }

    /// A part of the backend may be away for a moment, and its hosts with it.
    fn long_unnamed(
        &mut self,
        poll: &Poll,
        on_record: &[&str],
        now: Timestamp,
    ) -> impl Iterator<Item = String> {
        let named: BTreeSet<&str> = poll.hosts.iter().map(|sign| sign.host.as_str()).collect();
        let known = std::mem::take(&mut self.unnamed);
        let unnamed = on_record.iter().filter(|host| !named.contains(*host));
        self.unnamed = unnamed
            .map(|host| ((*host).to_owned(), known.get(*host).copied().unwrap_or(now)))
            .collect();
        let patience = self.patience();
        let long = self
            .unnamed
            .iter()
            .filter(move |(_, since)| now - **since >= patience);
        long.map(|(host, _)| host.clone())
    }

    fn patience(&self) -> TimeDelta {
        self.down_after / 2
    }

    fn is_well(&self, now: Timestamp) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| now - own.at < self.patience())
    }

    fn conclude(&self, sign: &Sign, is_well: bool, now: Timestamp) -> Option<Sighting> {
        let seen = self.hosts.get(&sign.host);
        let enough = if sign.is_marked_down {
            MOVES_WHEN_FORCED_DOWN
        } else {
            1
        };
        let sighting = |state, observed_at| Some(Sighting::of(state, observed_at));
        let silent = || Sighting {
            last_seen_at: seen.map(|seen| seen.after),
            silent_since: seen.map(|seen| seen.at),
            ..Sighting::of(FailureState::Unreachable, now)
        };
        if let Some(seen) = seen.filter(|seen| seen.moves > 0 && now - seen.at < self.patience()) {
            let is_up = seen.moves >= enough;
            let state = if is_up {
                FailureState::Up
            } else {
                FailureState::Unknown
            };
            return Some(Sighting {
                stirs: !is_up,
                ..Sighting::of(state, seen.after)
            });
        }
        if !is_well {
            return sighting(FailureState::Unknown, now);
        }
        let behind = self
            .own
            .as_ref()
            .zip(seen)
            .map(|(own, seen)| own.sign - seen.sign);
        match (behind, sign.is_marked_down) {
            (Some(behind), _) if behind >= self.down_after => Some(silent()),
            (_, false) if !sign.is_up => Some(silent()),
            // Not seen to move yet: the backend's word for it, of the time of the sign at best.
            (Some(_), false) => seen
                .filter(|seen| seen.moves == 0)
                .and_then(|seen| sighting(FailureState::Up, seen.after)),
            (Some(_) | None, true) | (None, false) => None,
        }
    }
}

/// How old what a source has said may become before it says it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refresh {
    /// That the host is UP.
    pub up: TimeDelta,
    /// That it is silent.
    pub silence: TimeDelta,
}

/// Whether a sighting says something new, or something that must not be old. `own` is what its source has on record: what others say
/// is theirs.
///
/// A sign of life is told however old it is: it may end a proof, and the silence before it.
#[must_use]
pub fn is_news(sighting: Sighting, own: Option<&Source>, refresh: Refresh) -> bool {
    let Some(own) = own else {
        return sighting.state != FailureState::Unknown;
    };
    let age = sighting.observed_at - own.observed_at;
    if own.state != sighting.state {
        return sighting.state == FailureState::Up || age >= TimeDelta::zero();
    }
    match sighting.state {
        FailureState::Up => age >= refresh.up,
        FailureState::Unreachable => age >= refresh.silence,
        FailureState::Unknown => false,
    }
}
