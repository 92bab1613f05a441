//! The nodes of a cluster as a controller knows them, which may be as they were some time ago.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::Value;

pub(super) const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The longest that a controller may be behind.
const KEPT: Duration = Duration::from_secs(120);

/// What a controller that acts on the out-of-service taint reads of a node.
#[derive(Clone, Debug)]
pub(super) struct NodeView {
    pub name: String,
    pub is_ready: bool,
    /// The taint's key counts, and neither its value nor its effect.
    pub is_out_of_service: bool,
    /// Pods that do not tolerate the taint are evicted by this effect.
    pub evicts: bool,
}

impl NodeView {
    fn of(node: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let taints = list(&node["spec"]["taints"]);
        let mut ours = taints.iter().filter(|taint| taint["key"] == OUT_OF_SERVICE);
        let conditions = list(&node["status"]["conditions"]);
        let is_true = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
        Self {
            name: node["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            is_ready: conditions.iter().any(is_true),
            is_out_of_service: ours.clone().next().is_some(),
            evicts: ours.any(|taint| taint["effect"] == "NoExecute"),
        }
    }
}

/// What was seen of all nodes, the oldest first.
#[derive(Debug, Default)]
pub(super) struct NodeViews {
    seen: VecDeque<(Instant, Vec<NodeView>)>,
}

impl NodeViews {
    /// Takes the list of all nodes as it is now.
    pub(super) fn take(&mut self, list: &Value, now: Instant) {
        let nodes = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.seen
            .push_back((now, nodes.iter().map(NodeView::of).collect()));
        while self.seen.front().is_some_and(|(at, _)| now - *at > KEPT) {
            self.seen.pop_front();
        }
    }

    /// The nodes as they were so long ago. None, if they were not looked at yet.
    pub(super) fn of(&self, now: Instant, behind: Duration) -> &[NodeView] {
        let mut newest_first = self.seen.iter().rev();
        let found = newest_first.find(|(at, _)| now - *at >= behind);
        found.map(|(_, nodes)| nodes.as_slice()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(is_out: bool, ready: &str) -> Value {
        let taints = if is_out {
            json!([{"key": OUT_OF_SERVICE, "value": "any", "effect": "NoSchedule"}])
        } else {
            Value::Null
        };
        json!({"items": [{
            "metadata": {"name": "n1"},
            "spec": {"taints": taints},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }]})
    }

    #[test]
    fn a_controller_that_is_behind_sees_a_taint_that_is_gone() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut views = NodeViews::default();
        views.take(&list(true, "Unknown"), after(0));
        views.take(&list(false, "True"), after(10));
        let seen = |now, behind| {
            let nodes = views.of(after(now), Duration::from_secs(behind));
            nodes.first().map(|node| (node.is_out_of_service, node.is_ready))
        };
        assert_eq!(seen(12, 0), Some((false, true)));
        assert_eq!(seen(12, 5), Some((true, false)));
        assert_eq!(seen(12, 15), None);
        assert!(!views.of(after(12), Duration::from_secs(5))[0].evicts);
    }
}
