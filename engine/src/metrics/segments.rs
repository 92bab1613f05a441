//! Problems of hosts and moves of workloads, by segment. The names of segments are a user's: so many have series of their own, and all others share one.

use std::collections::BTreeMap;
use std::mem::take;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringfence_core::{HostProblem, SegmentId};
use ringfence_db::SegmentSurvey;

use super::register;

/// Names of conditions that are told apart. All others are counted under no name.
const MOST_CONDITIONS: usize = 100;
/// The name of what shares a series.
const OTHERS: &str = "";

type Named<const N: usize> = [(&'static str, String); N];

/// What was counted of the hosts of one segment and is in no series yet: a series needs the segment's name.
#[derive(Default)]
struct Counted {
    problems: BTreeMap<HostProblem, u64>,
    alarms: BTreeMap<HostProblem, u64>,
}

/// The problems of hosts that this engine has committed, and what the database says of all segments.
#[derive(Default)]
pub(crate) struct SegmentNumbers {
    problems: Family<Named<2>, Counter>,
    alarms: Family<Named<2>, Counter>,
    conditions: Family<Named<1>, Counter>,
    quarantined: Family<Named<1>, Gauge>,
    alarmed: Family<Named<1>, Gauge>,
    moves: Family<Named<2>, Gauge>,
    counted: Mutex<BTreeMap<SegmentId, Counted>>,
    names: Mutex<Vec<String>>,
}

impl SegmentNumbers {
    pub fn register(&self, registry: &mut Registry) {
        register! { registry;
            self.problems => "host_problems", "Problems of hosts, by the segment's name and by problem (failed, fenced, returned, condition)";
            self.alarms => "host_alarms", "Alarms of hosts that began, by the segment's name and by problem";
            self.conditions => "host_conditions", "Conditions of hosts on which a rule of the segment came to act, by the condition's name";
            self.quarantined => "quarantined_hosts",
                "Hosts that were fenced too often lately, and are taken back by a person alone, by the segment's name";
            self.moves => "moves",
                "Moves of evacuations by the segment's name: under_way have begun and not ended, waiting begin after others have ended";
            self.alarmed => "alarmed_hosts", "Hosts with a problem that comes too often for their segment, by the segment's name";
        }
    }

    pub fn count(&self, segment: SegmentId, problem: HostProblem, condition: Option<&str>) {
        *self
            .counted
            .lock()
            .entry(segment)
            .or_default()
            .problems
            .entry(problem)
            .or_default() += 1;
        if let Some(name) = condition {
            let labels = [("condition", self.told_apart(name))];
            self.conditions.get_or_create(&labels).inc();
        }
    }

    pub fn count_alarm(&self, segment: SegmentId, problem: HostProblem) {
        *self
            .counted
            .lock()
            .entry(segment)
            .or_default()
            .alarms
            .entry(problem)
            .or_default() += 1;
    }

    /// The name, or that of all others.
    fn told_apart(&self, name: &str) -> String {
        let mut names = self.names.lock();
        let is_known = names.iter().any(|known| known == name);
        if !is_known && names.len() >= MOST_CONDITIONS {
            return OTHERS.to_owned();
        }
        if !is_known {
            names.push(name.to_owned());
        }
        name.to_owned()
    }

    /// Shows what the database says of the segments, and what was counted under their names.
    pub fn show(&self, segments: &[SegmentSurvey]) {
        self.forget();
        let _ = self.conditions.get_or_create(&[("condition", OTHERS.to_owned())]);
        let mut counted = take(&mut *self.counted.lock());
        for segment in segments {
            let Some((id, name)) = &segment.named else {
                self.show_gauges(OTHERS, segment);
                continue;
            };
            self.show_gauges(name, segment);
            // From the beginning, so that the first one is seen as a change.
            self.add(name, &counted.remove(id).unwrap_or_default());
        }
        for others in counted.values() {
            self.add(OTHERS, others);
        }
    }

    fn show_gauges(&self, name: &str, segment: &SegmentSurvey) {
        let labels = [("segment", name.to_owned())];
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.quarantined
            .get_or_create(&labels)
            .set(number(segment.quarantined));
        self.alarmed.get_or_create(&labels).set(number(segment.alarmed));
        for (state, moves) in [
            ("under_way", segment.moves_under_way),
            ("waiting", segment.moves_waiting),
        ] {
            let labels = [("segment", name.to_owned()), ("state", state.to_owned())];
            self.moves.get_or_create(&labels).set(number(moves));
        }
    }

    fn add(&self, name: &str, counted: &Counted) {
        for problem in HostProblem::ALL {
            let labels = [("segment", name.to_owned()), ("problem", problem.to_string())];
            let times = |of: &BTreeMap<HostProblem, u64>| of.get(problem).copied().unwrap_or_default();
            self.problems
                .get_or_create(&labels)
                .inc_by(times(&counted.problems));
            self.alarms.get_or_create(&labels).inc_by(times(&counted.alarms));
        }
    }

    /// What the database said is of the past.
    pub fn forget(&self) {
        self.quarantined.clear();
        self.alarmed.clear();
        self.moves.clear();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn text(counters: &SegmentNumbers) -> Vec<String> {
        let mut registry = Registry::default();
        counters.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let is_counted = |line: &&str| !line.starts_with('#') && !line.ends_with(" 0");
        text.lines().filter(is_counted).map(str::to_owned).collect()
    }

    fn segment(id: u128, name: &str, quarantined: u64) -> SegmentSurvey {
        SegmentSurvey {
            named: Some((SegmentId(Uuid::from_u128(id)), name.to_owned())),
            quarantined,
            ..SegmentSurvey::default()
        }
    }

    #[test]
    fn what_is_counted_is_shown_under_the_names_of_segments() {
        let counters = SegmentNumbers::default();
        let rack = SegmentId(Uuid::from_u128(1));
        counters.count(rack, HostProblem::Fenced, None);
        counters.count_alarm(rack, HostProblem::Fenced);
        counters.count(SegmentId(Uuid::from_u128(9)), HostProblem::Failed, None);
        assert_eq!(text(&counters), [""; 0], "no segment has a name yet");
        counters.show(&[segment(1, "rack-1", 1), segment(2, "rack-2", 0)]);
        counters.count(rack, HostProblem::Fenced, None);
        counters.show(&[segment(1, "rack-1", 0)]);
        let mut shown = text(&counters);
        shown.sort();
        let expected = [
            "host_alarms_total{segment=\"rack-1\",problem=\"fenced\"} 1",
            "host_problems_total{segment=\"\",problem=\"failed\"} 1",
            "host_problems_total{segment=\"rack-1\",problem=\"fenced\"} 2",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_detector_with_any_number_of_names_makes_no_such_number_of_series() {
        let counters = SegmentNumbers::default();
        for number in 0..MOST_CONDITIONS + 7 {
            let name = format!("Condition{number}");
            counters.count(SegmentId(Uuid::nil()), HostProblem::Condition, Some(&name));
        }
        counters.count(SegmentId(Uuid::nil()), HostProblem::Condition, Some("Condition0"));
        let shown = text(&counters);
        assert_eq!(shown.len(), MOST_CONDITIONS + 1);
        for line in [
            "host_conditions_total{condition=\"\"} 7",
            "host_conditions_total{condition=\"Condition0\"} 2",
        ] {
            assert!(shown.iter().any(|shown| shown == line), "{shown:#?}");
        }
    }
}
