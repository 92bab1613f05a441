//! Boots of a host as one source has seen them, and what they say about a moment: has the host booted since?

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::guard::{Guard, on};

/// How far a host's clock may be from the engine's when it writes down that it boots. A boot that the host dates closer to a moment
/// than this may have begun before it.
pub const BOOT_CLOCK_MARGIN: TimeDelta = TimeDelta::seconds(10);

/// How far a source's clock may be ahead of the engine's. What it saw closer to a moment than this it may have seen before it.
const SOURCE_CLOCK_MARGIN: TimeDelta = TimeDelta::seconds(3);

/// Boots that are remembered of one source.
const MAX_BOOTS: usize = 8;

/// What a source says about the host's present boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Changes with every boot (`/proc/sys/kernel/random/boot_id`, or a node's `bootID`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When the host says that it booted, by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted_at: Option<Timestamp>,
}

/// One boot, and when the source has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenBoot {
    /// What the source says about it.
    #[serde(flatten)]
    pub boot: Boot,
    /// When it was seen first.
    pub first_seen: Timestamp,
    /// When it was seen last.
    pub last_seen: Timestamp,
}

/// What the boots of one source say about a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The boot that was seen last began after the moment; it was seen first then.
    Newer(Timestamp),
    /// It began before the moment; it was seen last then.
    Older(Timestamp),
}

/// The boots that one source has seen, in the order in which they were first seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Boots(Vec<SeenBoot>);

impl Boots {
    /// All of them, in the order in which they were first seen.
    pub fn iter(&self) -> std::slice::Iter<'_, SeenBoot> {
        self.0.iter()
    }

    /// Takes down a boot that was seen at `at`. Reports may come late.
    pub(crate) fn note(&mut self, boot: Boot, at: Timestamp) {
        let known = self.0.iter_mut().find(|known| known.boot.id == boot.id);
        match known {
            Some(known) => {
                known.first_seen = known.first_seen.min(at);
                known.last_seen = known.last_seen.max(at);
                known.boot.booted_at = boot.booted_at.or(known.boot.booted_at);
            }
            None => self.0.push(SeenBoot {
                boot,
                first_seen: at,
                last_seen: at,
            }),
        }
        self.0.sort_by_key(|seen| seen.first_seen);
        if self.0.len() > MAX_BOOTS {
            self.0.remove(0);
        }
    }

    /// The boot that was seen last.
    #[must_use]
    pub fn latest(&self) -> Option<&SeenBoot> {
        self.0.iter().max_by_key(|seen| seen.last_seen)
    }

    /// Whether the boot that was seen last began after `moment`; `None` if nothing was seen since, or what was seen does not tell.
    ///
    /// A boot that was seen at the moment or before it is older. The host's own date decides where it is clear of the moment and not
    /// later than the sight of it, which would show a wrong clock. Without one two boots have to be seen clearly after the moment: the first
    /// of them may have begun, unseen, before it.
    /// A date of a host, and of what a source saw, speaks of the clock that holds now: it counts from `clock_set_at` on only.
    pub(crate) fn since(&self, moment: Timestamp, clock_set_at: Option<Timestamp>) -> Option<Verdict> {
        let latest = self.latest().filter(|latest| latest.last_seen > moment)?;
        let newer = Verdict::Newer(latest.first_seen);
        let older = Verdict::Older(latest.last_seen);
        // Without an id every report counts as a boot of its own, and a date may be that of a clock that was set since.
        latest.boot.id.as_ref()?;
        if latest.first_seen <= moment {
            return Some(older);
        }
        let dated = latest.boot.booted_at.filter(|at| *at <= latest.last_seen);
        if dated.is_some_and(|at| at < moment - BOOT_CLOCK_MARGIN) {
            return Some(older);
        }
        let told_since = clock_set_at.map_or(moment, |set_at| set_at.max(moment));
        let clear = told_since + BOOT_CLOCK_MARGIN;
        let is_dated_newer = dated.is_some_and(|at| at > clear || !on(Guard::BootClockMargin));
        let seen_since = if on(Guard::SeenSinceClockSet) {
            told_since
        } else {
            moment
        };
        let is_baseline = !self.has_replaced_one_since(latest, seen_since) && on(Guard::FirstBootIsBaseline);
        (is_dated_newer || !is_baseline).then_some(newer)
    }

    /// Whether another boot was seen after the moment and before this one. The source's clock may be ahead of the engine's.
    fn has_replaced_one_since(&self, latest: &SeenBoot, moment: Timestamp) -> bool {
        let clear = if on(Guard::BootSeenClearlyLater) {
            moment + SOURCE_CLOCK_MARGIN
        } else {
            moment
        };
        let is_between = |other: &SeenBoot| {
            other.boot.id.is_some() && other.last_seen > clear && other.last_seen < latest.first_seen
        };
        self.0.iter().any(is_between)
    }

    /// These, without the times that change with every report: how long the present boot has been seen is left out.
    pub(crate) fn settled(&self) -> Self {
        let mut settled = self.clone();
        if let Some(latest) = settled.0.iter_mut().max_by_key(|seen| seen.last_seen) {
            latest.last_seen = latest.first_seen;
        }
        settled
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        for seen in &mut self.0 {
            seen.first_seen = seen.first_seen.min(now);
            seen.last_seen = seen.last_seen.min(now);
        }
    }
}
