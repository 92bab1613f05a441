//! Safeguards: what has to hold before a fence that was not asked for begins. What they depend on is an argument; nothing is asked here.

use serde::{Deserialize, Serialize};

use crate::{
    Cause, FailureState, FencingPolicy, Neighbourhood, Suspension, SuspensionScope, Timestamp, words,
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
    /// Fewer fences of the segment's hosts are under way than may be at one time.
    AtOnce,
}

words!(Safeguard);

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
            Verdict::Hold | Verdict::Unknown => true,
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

/// A fence that was not asked for and that safeguards hold: it does nothing, and they are looked at again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Since when.
    pub since: Timestamp,
    /// When the safeguards were looked at last.
    pub looked_at: Timestamp,
    /// Those that hold it.
    pub by: Vec<Ruling>,
}

/// What every safeguard says of a fence that began for this cause, of a host in this failure state that is suspended so.
#[must_use]
pub fn rulings(
    policy: &FencingPolicy,
    suspended: Option<(SuspensionScope, &Suspension)>,
    cause: Cause,
    state: FailureState,
    around: Neighbourhood,
) -> Vec<Ruling> {
    let silence = silence(state).filter(|_| cause == Cause::Silence);
    let suspended = suspended.map(|(scope, suspension)| suspension.ruling(scope));
    let at_once = policy.at_once.map(|limit| at_once(limit, around));
    silence.into_iter().chain(suspended).chain(at_once).collect()
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

/// Those that fell silent earlier come first, so that no two hosts wait for each other. The count may be old when it is decided upon: that no more
/// fences run than may is what permits are for.
fn at_once(limit: u32, around: Neighbourhood) -> Ruling {
    let Neighbourhood {
        under_way, before_it, ..
    } = around;
    let is_full = under_way.saturating_add(before_it) >= u64::from(limit);
    let waiting = match before_it {
        0 => String::new(),
        hosts => format!(", {hosts} that fell silent earlier come first"),
    };
    Ruling {
        safeguard: Safeguard::AtOnce,
        verdict: if is_full { Verdict::Hold } else { Verdict::Allow },
        reason: format!(
            "{under_way} fences of the segment's hosts are under way{waiting}, and {limit} may be at one time"
        ),
        release: is_full.then(|| "the end of a fence of the segment".to_owned()),
    }
}
