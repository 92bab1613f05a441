//! S5: no `on` is started while an `off` of the same or a newer generation may still be running. Before it acts, a worker
//! claims its attempt; a stale or cancelled attempt is refused.

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{grants, releases, takes};
use super::settings::setting;

proptest! {
    /// In both directions: an `off` that an `on` could overtake would prove nothing. An attempt that was given up may still take effect.
    #[test]
    fn s5_off_beats_on(setting in setting(), actions in history(Truthfulness::Truthful)) {
        let world = live_through(setting.world(), &actions);
        let grants = grants(&world);
        for (i, later) in grants.iter().enumerate() {
            for earlier in &grants[..i] {
                let (first, second) = (earlier.claim.kind, later.claim.kind);
                let pull_apart = first.resource() == second.resource()
                    && (takes(first) && releases(second) || releases(first) && takes(second));
                let both_may_act = earlier.may_act_until() > later.real;
                prop_assert!(!(pull_apart && both_may_act), "{earlier:?} and {later:?}");
            }
        }
        prop_assert_eq!(world.violation, None, "{:#?}", world.log);
    }

    #[test]
    fn s5_only_the_present_attempt_is_granted_and_to_one_worker(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let grants = grants(&world);
        for (i, grant) in grants.iter().enumerate() {
            prop_assert!(grants[..i].iter().all(|earlier| earlier.claim.attempt != grant.claim.attempt));
            let moment = &world.trace[grant.at];
            let operation = moment.before.operation.as_ref().expect("an operation is live");
            prop_assert_eq!(operation.id, grant.claim.attempt.operation_id);
            // Workloads are kept off the host while a person is asked for the rest.
            let may_wait = grant.claim.kind == StepKind::Isolate;
            prop_assert!(operation.status == OperationStatus::Running || may_wait, "{:?}", operation.status);
            prop_assert_eq!(moment.before.host.generation, grant.claim.generation);
            prop_assert!(grant.budget_ms <= u64::from(grant.method.as_ref().map_or(300, |method| method.times.attempt_timeout_s)) * 1_000);
        }
    }
}
