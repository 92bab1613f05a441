//! What the rules know of platforms: which sorts are asked for anything, and how long their steps may take.

use crate::{Backend, EvacuationPolicy, Host, HostState, MethodTimes, PlatformHost, SegmentPolicy, StepKind};

/// The longest that one attempt at anything may take, in seconds.
const LONGEST_ATTEMPT_S: u32 = 300;
/// The longest that all attempts at one step may take, in seconds.
const LONGEST_S: u32 = 900;
/// The longest that one attempt at a move may take where it is one deletion, in seconds. A host is not taken back before an attempt whose worker has
/// vanished is over.
const LONGEST_DELETION_S: u32 = 30;

impl Backend {
    /// A platform's name with its sort before it, as reports, attempts and requests name it.
    #[must_use]
    pub fn label(self, platform: &str) -> String {
        format!("{self}:{platform}")
    }

    /// Whether Ringfence asks platforms of this sort to look after the workloads of their hosts.
    #[must_use]
    pub const fn is_asked(self) -> bool {
        match self {
            Self::Nova | Self::Kubernetes => true,
            Self::None => false,
        }
    }

    /// Whether the platform itself starts workloads on hosts without being asked. It has to be kept from that as soon as a fence begins,
    /// and is let do it again when all else has been released.
    #[must_use]
    pub const fn starts_by_itself(self) -> bool {
        match self {
            Self::Kubernetes => true,
            Self::Nova | Self::None => false,
        }
    }
}

/// The platform that carries out workload steps for the host; `None` if no platform does.
pub(crate) fn platform_of(state: &HostState) -> Option<PlatformHost> {
    let host = &state.host;
    let platform = host.cloud.clone().filter(|_| host.backend.is_asked())?;
    Some(PlatformHost {
        backend: host.backend,
        platform,
        host: host.known_as().to_owned(),
        zone: state
            .policy
            .workloads_zone
            .clone()
            .unwrap_or_else(|| host.zone.clone()),
    })
}

/// The time that a step has on a platform of this sort.
pub(crate) fn step_times(kind: StepKind, backend: Backend, policy: &SegmentPolicy) -> MethodTimes {
    match kind {
        StepKind::Move if backend.starts_by_itself() => times_of_a_deletion(&policy.evacuation),
        StepKind::Move => times_of_a_move(&policy.evacuation),
        // The host's own agent has to do it, which begins when it has started.
        StepKind::CleanUp | StepKind::MarkUp | StepKind::Start => MethodTimes {
            attempt_timeout_s: policy.rejoin_wait_s.clamp(30, LONGEST_ATTEMPT_S),
            timeout_s: policy.rejoin_wait_s.clamp(60, LONGEST_S),
            retries: 10,
            pause_ms: 1_000,
            ..MethodTimes::default()
        },
        StepKind::Isolate | StepKind::MarkDown | StepKind::List | StepKind::Empty | StepKind::AddCapacity => {
            MethodTimes {
                attempt_timeout_s: 60,
                timeout_s: 300,
                retries: 5,
                pause_ms: 1_000,
                ..MethodTimes::default()
            }
        }
    }
}

/// The time for one workload counts for every try of it.
fn times_of_a_move(policy: &EvacuationPolicy) -> MethodTimes {
    MethodTimes {
        attempt_timeout_s: policy.timeout_s.min(LONGEST_ATTEMPT_S),
        timeout_s: policy.timeout_s.saturating_mul(policy.retries + 1).min(LONGEST_S),
        retries: policy.retries,
        pause_ms: 1_000,
        ..MethodTimes::default()
    }
}

/// All the time for one workload, in short attempts.
fn times_of_a_deletion(policy: &EvacuationPolicy) -> MethodTimes {
    let whole = times_of_a_move(policy);
    let attempt_timeout_s = whole.attempt_timeout_s.min(LONGEST_DELETION_S);
    MethodTimes {
        attempt_timeout_s,
        retries: whole.timeout_s / attempt_timeout_s.max(1),
        ..whole
    }
}

impl Host {
    /// The name by which its platform knows it.
    #[must_use]
    pub fn known_as(&self) -> &str {
        self.known_as.as_deref().unwrap_or(&self.name)
    }
}
