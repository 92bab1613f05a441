//! Safeguards: what has to hold before a fence that was not asked for begins. What they depend on is an argument; nothing is asked here.

use serde::{Deserialize, Serialize};

use crate::guard::{Guard, on};
use crate::{
    Cause, Condition, FailureState, HostState, Neighbourhood, Operation, Opinions, Timestamp, cool_down,
    decide::after_s, group, sight, words,
};

/// Seconds between two looks at the safeguards of a fence that they hold.
pub(crate) const LOOK_AGAIN_S: u32 = 5;

/// What has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Safeguard {
    /// The host is silent, as far as is known.
    Silence,
    /// Neither the host nor its segment is suspended, nor are all hosts.
    Suspension,
    /// No condition of the host spares it.
    Condition,
    /// A source that does not hear the host hears enough others.
    Sight,
    /// The segment has been quiet for some time since its storm brake held a fence.
    CoolDown,
    /// Every Ceph of which the host is a part goes on without it.
    Ceph,
    /// Every query that the segment names allows it.
    Query,
    /// So many hosts of each of its groups stay in service as have to.
    Quorum,
    /// Fewer fences of the hosts of its segment, and of each of its groups, are under way than may be at one time.
    AtOnce,
    /// Fewer fences of the segment's hosts have begun by themselves in this minute than may.
    PerMinute,
}

words!(Safeguard);

impl Safeguard {
    /// Whether others are asked for what it says.
    pub(crate) fn is_asked(self) -> bool {
        match self {
            Self::Ceph | Self::Query => true,
            Self::Silence
            | Self::Suspension
            | Self::Condition
            | Self::Sight
            | Self::CoolDown
            | Self::Quorum
            | Self::AtOnce
            | Self::PerMinute => false,
        }
    }

    /// Whether it holds each step of a fence, and not its beginning alone.
    pub(crate) fn holds_steps(self) -> bool {
        self.is_asked() || matches!(self, Self::Suspension | Self::Quorum)
    }

    fn guard(self) -> Guard {
        match self {
            Self::Silence => Guard::SilenceIsWaitedFor,
            Self::Suspension => Guard::SuspensionHolds,
            Self::Condition => Guard::SparedIsHeld,
            Self::Sight => Guard::SightHolds,
            Self::CoolDown => Guard::CoolDownHolds,
            Self::Ceph => Guard::CephHolds,
            Self::Query => Guard::QueryHolds,
            Self::Quorum => Guard::QuorumHolds,
            Self::AtOnce => Guard::AtOnceHolds,
            Self::PerMinute => Guard::PerMinuteHolds,
        }
    }

    /// Whether it only says whose turn it is.
    pub(crate) fn is_line(self) -> bool {
        match self {
            Self::AtOnce | Self::PerMinute => true,
            Self::Silence
            | Self::Suspension
            | Self::Condition
            | Self::Sight
            | Self::CoolDown
            | Self::Quorum
            | Self::Ceph
            | Self::Query => false,
        }
    }
}

/// What a safeguard says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// The fence may begin.
    Allow,
    /// The fence has to wait.
    Hold,
    /// It cannot be told: the fence has to wait.
    Unknown,
}

words!(Verdict);

/// What one safeguard says of one fence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// Which.
    pub safeguard: Safeguard,
    /// What it says.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// What would end the wait, in words; `None` where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

impl Ruling {
    /// Whether the fence has to wait for it.
    #[must_use]
    pub fn holds(&self) -> bool {
        match self.verdict {
            Verdict::Allow => false,
            Verdict::Hold | Verdict::Unknown => on(self.safeguard.guard()),
        }
    }

    /// In words.
    pub(crate) fn told(&self) -> String {
        let release = self.release.as_deref();
        let release = release.map(|release| format!(" (released by: {release})"));
        format!(
            "held by {}: {}{}",
            self.safeguard,
            self.reason,
            release.unwrap_or_default()
        )
    }
}

/// A fence that no person asked for and that safeguards hold: it does nothing, and they are looked at again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Since when.
    pub since: Timestamp,
    /// When the safeguards were looked at last.
    pub looked_at: Timestamp,
    /// Those that hold it; empty before the first look.
    pub by: Vec<Ruling>,
}

/// What every safeguard says of an automatic fence of the host that began for this cause, if its failure state is this one.
#[must_use]
pub fn rulings(
    host: &HostState,
    cause: Cause,
    state: FailureState,
    around: &Neighbourhood,
    opinions: &Opinions,
    now: Timestamp,
) -> Vec<Ruling> {
    let policy = &host.policy.fencing;
    let silence = silence(state).filter(|_| cause == Cause::Silence);
    let suspended = host.suspensions(now).next();
    let suspended = suspended.map(|(scope, suspension)| suspension.ruling(scope));
    let spared = host.host.conditions.spares().map(|(name, why)| spared(name, why));
    let at_once = policy.at_once.map(|limit| at_once(limit, around));
    let per_minute = policy.per_minute.map(|limit| per_minute(limit, around));
    let groups = group::rulings(policy, &host.host.labels, around, now);
    let quiet = policy
        .quiet_s
        .map(|quiet_s| cool_down::ruling(quiet_s, around.not_quiet_since));
    let due = host
        .host
        .failure_since
        .map(|since| after_s(since, policy.after_s));
    // A program sees through its own sources, which may be cut off as ours are.
    let sight = policy.sight.filter(|_| cause != Cause::Condition);
    let sight = sight.map(|sight| {
        let is_early = cause == Cause::Program;
        sight::ruling(sight, &host.host, &around.sights, (due, is_early), now)
    });
    let before = [silence, suspended, spared, sight, quiet].into_iter().flatten();
    let asked = opinions.rulings(&host.policy, now);
    let line = [at_once, per_minute].into_iter().flatten();
    before.chain(groups).chain(asked).chain(line).collect()
}

/// Whether others have to be asked before it can be told whether an automatic fence of the host may begin: nothing else keeps it from it.
#[must_use]
pub fn asks_others(state: &HostState, around: &Neighbourhood, now: Timestamp) -> bool {
    let live = state.operation.as_ref().filter(|live| live.status.is_live());
    let fence = live.and_then(Operation::fence);
    if fence.is_some_and(|fence| fence.asks.is_some()) {
        return true;
    }
    let held = fence.filter(|fence| fence.held.is_some());
    let cause = held.map_or_else(|| Cause::of_automatic(&state.host), |fence| fence.cause);
    let policy = &state.policy.fencing;
    let seen = state.host.failure_state;
    let all = rulings(state, cause, seen, around, &Opinions::default(), now);
    let mut others = all.iter().filter(|ruling| !ruling.safeguard.is_asked());
    let is_free = others.all(|ruling| !ruling.holds()) && policy.brake(around).is_none();
    is_free && all.iter().any(|ruling| ruling.safeguard.is_asked())
}

fn spared(name: &str, condition: &Condition) -> Ruling {
    let Condition { status, reason, .. } = condition;
    let why = if reason.is_empty() {
        "no reason is told"
    } else {
        reason
    };
    Ruling {
        safeguard: Safeguard::Condition,
        verdict: Verdict::Hold,
        reason: format!(
            "the condition {name} of the host is {status}, and spares it as its segment says: {why}"
        ),
        release: Some("the end of the condition".to_owned()),
    }
}

/// Only what is silent is fenced without being asked: `None` where the host is.
fn silence(state: FailureState) -> Option<Ruling> {
    let (verdict, reason, release) = match state {
        FailureState::Unreachable => return None,
        FailureState::Up => (Verdict::Hold, "the host is seen UP", None),
        FailureState::Unknown => (
            Verdict::Unknown,
            "it is UNKNOWN whether the host is silent",
            Some("a source that sees the host as UNREACHABLE".to_owned()),
        ),
    };
    Some(Ruling {
        safeguard: Safeguard::Silence,
        verdict,
        reason: reason.to_owned(),
        release,
    })
}

fn at_once(limit: u32, around: &Neighbourhood) -> Ruling {
    let counted = (around.under_way, around.before_it, limit);
    in_line(Safeguard::AtOnce, counted, "the segment")
}

fn per_minute(limit: u32, around: &Neighbourhood) -> Ruling {
    let counted = (around.begun, around.before_it, limit);
    in_line(Safeguard::PerMinute, counted, "the segment")
}

/// Holds a fence for which there is no room after those that come first: those that fell silent earlier, so that no two hosts wait for each other. The count may be old when it
/// is decided upon: that no more fences run than may is what permits are for.
pub(crate) fn in_line(
    safeguard: Safeguard,
    (taken, before_it, limit): (u64, u64, u32),
    whose: &str,
) -> Ruling {
    let is_full = taken.saturating_add(before_it) >= u64::from(limit);
    let (fences, is, has) = match taken {
        1 => ("fence", "is", "has"),
        _ => ("fences", "are", "have"),
    };
    let (state, release) = match safeguard {
        Safeguard::PerMinute => (
            format!("{has} begun without being asked in this minute; at most {limit} may"),
            "the next minute".to_owned(),
        ),
        _ => (
            format!("{is} under way; at most {limit} may be"),
            format!("the end of a fence of {whose}"),
        ),
    };
    let before = match before_it {
        0 => String::new(),
        1 => "; 1 host fell silent earlier and comes first".to_owned(),
        hosts => format!("; {hosts} hosts fell silent earlier and come first"),
    };
    Ruling {
        safeguard,
        verdict: if is_full { Verdict::Hold } else { Verdict::Allow },
        reason: format!("{taken} {fences} of {whose}'s hosts {state}{before}"),
        release: is_full.then_some(release),
    }
}
