//! What an observer concludes from the boots that hosts write down with their backend.
//!
//! A boot that was cut off may not have its storage back, and the host shows that it has booted anew by a boot that was seen after the cut and
//! another one after that. So the moment at which a boot was seen must not be later than the boot itself: what a backend shows may have been
//! written by a boot that has ended since.

use std::collections::BTreeMap;

use chrono::TimeDelta;

use crate::{Poll, Timestamp};

/// A backend carries out what it was asked to write within this time, or not at all. (An API server of Kubernetes ends a request after so long.)
const LANDS_WITHIN: TimeDelta = TimeDelta::seconds(60);

/// What a host has written down of its present boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootSign {
    /// The boot's id.
    pub id: String,
    /// Changes whenever the host writes, and never otherwise.
    pub written: String,
}

/// A boot that ran at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootSighting {
    /// Its id.
    pub id: String,
    /// For a boot that is new: a moment that its first sign came after. For one that was known: a moment at which it still ran, or after which.
    pub at: Timestamp,
}

#[derive(Clone, Debug)]
struct Known {
    sign: BootSign,
    /// When its id was first seen.
    since: Timestamp,
    /// Not taken yet.
    seen: Option<BootSighting>,
}

/// Watches the boots of the hosts of one backend.
#[derive(Clone, Debug, Default)]
pub struct BootWatch {
    hosts: BTreeMap<String, Known>,
    looked_at: Option<Timestamp>,
    /// The newest sign of life of the backend's own services.
    own: Option<Timestamp>,
    /// A moment that it came after, by our clock: what the backend shows may be as old as that.
    live_at: Option<Timestamp>,
}

impl BootWatch {
    /// Takes an answer. What is there at the first look says nothing of when it was written.
    pub fn look(&mut self, poll: &Poll, now: Timestamp) {
        let before = self.looked_at.replace(now);
        let live_at = self.live_at;
        if poll.own.is_some() && poll.own != self.own {
            (self.own, self.live_at) = (poll.own, before);
        }
        let mut known = std::mem::take(&mut self.hosts);
        for host in &poll.hosts {
            let Some(sign) = &host.boot else { continue };
            let next = match (known.remove(&host.host), before) {
                (Some(known), Some(before)) => known.then(sign, before, live_at),
                (None, _) | (_, None) => Known {
                    sign: sign.clone(),
                    since: now,
                    seen: None,
                },
            };
            self.hosts.insert(host.host.clone(), next);
        }
    }

    /// What was seen of the host's boot since the last time, if anything was.
    pub fn take(&mut self, host: &str) -> Option<BootSighting> {
        self.hosts.get_mut(host)?.seen.take()
    }
}

impl Known {
    /// `before` is when the sign before was there still, and `live_at` what was known then of the backend's own services.
    fn then(self, sign: &BootSign, before: Timestamp, live_at: Option<Timestamp>) -> Self {
        if self.sign == *sign {
            return self;
        }
        let id = sign.id.clone();
        let sign = sign.clone();
        if self.sign.id != id {
            let seen = Some(BootSighting { id, at: before });
            return Self {
                sign,
                since: before,
                seen,
            };
        }
        let at = live_at.map(|live_at| live_at - LANDS_WITHIN);
        // An earlier moment would be taken for the one at which the boot was first seen.
        let still = at
            .filter(|at| *at >= self.since)
            .map(|at| BootSighting { id, at });
        let seen = self.seen.or(still);
        Self { sign, seen, ..self }
    }
}
