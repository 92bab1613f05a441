//! Which sufficient sets could be completed now, as far as is known, and what keeps each of the others from that.

use std::collections::BTreeMap;

use super::facts::{Facts, MethodFacts};
use super::preview::FencePreview;
use crate::kdump::has_addresses;
use crate::{
    CheckOutcome, FencingKind, HostState, KDUMP, LastCheck, ProofKind, ResolvedLevel, ResolvedMethod,
    ResolvedPlan, ResolvedTask, SufficientSet, Timestamp,
};

/// A sufficient set, as things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetProspect {
    /// Its proofs.
    pub proofs: Vec<ProofProspect>,
}

/// A proof of a sufficient set, as things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofProspect {
    /// Which.
    pub kind: ProofKind,
    /// What keeps it from being won; none if nothing that is known does.
    pub hindrances: Vec<String>,
    /// When time alone allows it, where it depends on time.
    pub due_at: Option<Timestamp>,
}

impl SetProspect {
    /// Whether nothing that is known keeps it from being completed.
    #[must_use]
    pub fn can_be_completed(&self) -> bool {
        !self.proofs.is_empty() && self.proofs.iter().all(|proof| proof.hindrances.is_empty())
    }

    /// Whether a person has to confirm something for it.
    #[must_use]
    pub fn needs_person(&self) -> bool {
        self.proofs.iter().any(|proof| proof.kind == ProofKind::Operator)
    }
}

pub(super) fn sets(
    facts: &Facts,
    state: &HostState,
    fence: &FencePreview,
    now: Timestamp,
) -> Vec<SetProspect> {
    let known = Known {
        plan: facts.plan.as_ref(),
        methods: &facts.methods,
        state,
        fence,
        now,
    };
    let of_set = |set: &SufficientSet| SetProspect {
        proofs: set.iter().map(|kind| known.prospect(*kind)).collect(),
    };
    facts.sufficient_sets.iter().map(of_set).collect()
}

struct Known<'a> {
    plan: Option<&'a ResolvedPlan>,
    methods: &'a BTreeMap<String, MethodFacts>,
    state: &'a HostState,
    fence: &'a FencePreview,
    now: Timestamp,
}

impl Known<'_> {
    fn prospect(&self, kind: ProofKind) -> ProofProspect {
        let due_at = match kind {
            ProofKind::SelfFencing => self.fence.self_fencing_due,
            ProofKind::PowerOff
            | ProofKind::StorageFence
            | ProofKind::NetworkFence
            | ProofKind::Kdump
            | ProofKind::Operator => None,
        };
        let hindrances = match kind {
            proven if self.fence.proven.contains(&proven) => Vec::new(),
            ProofKind::PowerOff => self.by_tasks(FencingKind::PowerOff),
            ProofKind::StorageFence => self.by_tasks(FencingKind::StorageFence),
            ProofKind::NetworkFence => self.by_tasks(FencingKind::NetworkFence),
            ProofKind::SelfFencing => self.by_watchdog().into_iter().collect(),
            ProofKind::Kdump => self.by_crash_kernel().into_iter().collect(),
            ProofKind::Operator => Vec::new(),
        };
        ProofProspect {
            kind,
            hindrances,
            due_at,
        }
    }

    /// Every task of the kind has to be done for the proof.
    fn by_tasks(&self, kind: FencingKind) -> Vec<String> {
        let Some(plan) = self.plan else {
            return vec!["no plan applies to the host".to_owned()];
        };
        let mut tasks = plan.tasks().filter(|task| task.kind == kind).peekable();
        if tasks.peek().is_none() {
            return vec![format!("the plan has no task {kind}")];
        }
        tasks.flat_map(|task| self.of_task(task)).collect()
    }

    /// One level without hindrances is enough.
    fn of_task(&self, task: &ResolvedTask) -> Vec<String> {
        let levels: Vec<_> = task.levels.iter().map(|level| self.of_level(level)).collect();
        if levels.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        levels.into_iter().flatten().collect()
    }

    /// Every method of a level has to do it.
    fn of_level(&self, level: &ResolvedLevel) -> Vec<String> {
        if level.methods.is_empty() {
            return vec![format!("level {} has no method", level.level)];
        }
        let nothing = MethodFacts::default();
        let of_method = |method: &ResolvedMethod| {
            let facts = self.methods.get(&method.name).unwrap_or(&nothing);
            let whys = method.hindrances(facts).into_iter();
            let name = &method.name;
            whys.map(|why| format!("method {name}: {why}"))
                .collect::<Vec<_>>()
        };
        level.methods.iter().flat_map(of_method).collect()
    }

    fn by_crash_kernel(&self) -> Option<String> {
        let host = &self.state.host;
        if !has_addresses(host) {
            return Some(format!("the host names no address under parameters.{KDUMP}"));
        }
        let is_on = host.kdump.as_ref().is_some_and(|dump| dump.is_on(self.now));
        (!is_on).then(|| "the host sends no kdump messages".to_owned())
    }

    fn by_watchdog(&self) -> Option<String> {
        if self.state.policy.self_fencing_timeout_s.is_none() {
            return Some("the segment has no self_fencing_timeout_s".to_owned());
        }
        self.fence.self_fencing_due.is_none().then(|| {
            "the host's silence is not watched by every source that has had a sign of life of it".to_owned()
        })
    }
}

impl ResolvedMethod {
    /// What keeps a task from being done and proven with it, as far as is known.
    #[must_use]
    pub fn hindrances(&self, facts: &MethodFacts) -> Vec<String> {
        let frozen = match &self.filled_in {
            Ok(frozen) => frozen,
            Err(unusable) => return vec![unusable.to_string()],
        };
        let untrusted = (!frozen.can_prove).then(|| {
            "its parameters do not say that it is trusted, so that what it shows proves nothing".to_owned()
        });
        let unserved = (facts.is_served == Some(false)).then(|| {
            format!(
                "no worker takes tasks for {} in zone {:?}",
                frozen.resource.as_str(),
                frozen.zone
            )
        });
        let failed = facts.check.as_ref().and_then(failed_check);
        [untrusted, facts.shared.clone(), unserved, failed]
            .into_iter()
            .flatten()
            .collect()
    }
}

fn failed_check(check: &LastCheck) -> Option<String> {
    if check.answer.outcome == CheckOutcome::Confirmed {
        return None;
    }
    let detail = check.answer.detail.as_deref().unwrap_or("no detail");
    let at = check.at.format("%FT%TZ");
    Some(format!(
        "its last check, at {at}, was {}: {detail}",
        check.answer.outcome
    ))
}
