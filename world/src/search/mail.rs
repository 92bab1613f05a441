//! What sources see and say.

use chrono::TimeDelta;
use ringfence_core::{Boot, FailureState, Report, Timestamp};

use super::setting::SimSource;
use crate::World;

/// A report on its way, with the boot that it is about.
#[derive(Clone, Debug)]
pub struct Letter {
    /// What it says.
    pub report: Report,
    /// The number of that boot.
    pub boot: Option<u32>,
    /// When the sign of life came that it tells of, by the clock that is never set.
    pub heard_at: Option<Timestamp>,
}

/// What one source knows.
#[derive(Clone, Debug)]
pub struct Ear {
    /// Which source.
    pub source: SimSource,
    /// Since when it listens, by the clock that is never set.
    pub since: Timestamp,
}

impl Ear {
    /// What it says now. One that has not listened for long enough knows nothing of a host that it has not heard.
    #[must_use]
    pub fn look(&self, world: &World, host_skew_ms: i64) -> Letter {
        let heard = world.site.heard_by(&self.source.name);
        let patience = TimeDelta::milliseconds(self.source.patience_ms);
        let recent = heard.filter(|heard| world.real - heard.at < patience);
        let boot = recent
            .filter(|_| self.source.names_boots || self.source.dates_boots)
            .map(|heard| Boot {
                id: self.source.names_boots.then(|| format!("boot-{}", heard.boot)),
                booted_at: self.source.dates_boots.then(|| {
                    let booted_at = heard.booted_at + (world.now - world.real);
                    booted_at + TimeDelta::milliseconds(host_skew_ms)
                }),
            });
        let state = match recent {
            Some(_) => FailureState::Up,
            None if world.real - self.since >= patience => FailureState::Unreachable,
            None => FailureState::Unknown,
        };
        let ago = recent.map_or(TimeDelta::zero(), |heard| world.real - heard.at);
        let skew = TimeDelta::milliseconds(self.source.skew_ms);
        let last_seen = heard.filter(|_| recent.is_none() && self.source.says_last_seen);
        let report = Report {
            state,
            source: self.source.name.clone(),
            observed_at: world.now - ago + skew,
            last_seen_at: last_seen.map(|heard| world.now - (world.real - heard.at) + skew),
            silent_since: None,
            boot,
        };
        Letter {
            report,
            boot: recent.or(last_seen).map(|heard| heard.boot),
            heard_at: recent.or(last_seen).map(|heard| heard.at),
        }
    }
}
