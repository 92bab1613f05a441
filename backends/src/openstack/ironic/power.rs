//! The power of a node, by Ironic.
//!
//! Ironic records the power state. Under maintenance, where Ironic does not act by itself, the record is the last state that Ironic set or
//! read. Ironic reads the device only when it is told to switch, so only the record after a second command counts.

use backon::{ConstantBuilder, Retryable};
use ringfence_core::ObservedState;
use tokio::time::{Instant, sleep};

use crate::BackendError;
use crate::openstack::PowerTarget;
use crate::openstack::beyond::Node;
use crate::openstack::host::{Fenced, HostOf, PAUSE, ReadBack};

/// How every reason of Ringfence's begins. Ringfence does not end a maintenance for another reason.
const OURS: &str = "fenced by Ringfence";

/// The power state of a node, as Ironic shows it.
#[derive(Debug)]
pub enum NodePower {
    /// Exactly on or off, with a description.
    Known(ObservedState, String),
    /// The state cannot be told, and why.
    Unclear(String),
    /// Ironic knows no such node.
    NoNode(String),
}

impl HostOf<'_> {
    fn unknown(&self) -> String {
        format!(
            "ironic of cloud {} knows no node {}, or does not show it to this user",
            self.cloud.name(),
            self.host
        )
    }

    /// The power state of the node in Ironic's records.
    ///
    /// # Errors
    /// Ironic is away, or refuses.
    pub async fn power(&self) -> Result<NodePower, BackendError> {
        let Some(node) = self.cloud.node(self.host).await? else {
            return Ok(NodePower::NoNode(self.unknown()));
        };
        Ok(match shown(&node) {
            ObservedState::Unknown => NodePower::Unclear(trouble(&node, "its power state is not known")),
            state => NodePower::Known(state, format!("{}, as ironic last read or set it", words(&node))),
        })
    }

    /// Begins maintenance, and switches the node off.
    ///
    /// # Errors
    /// Ironic is away, or refuses.
    pub async fn switch_off(&self) -> Result<Fenced, BackendError> {
        let Some(node) = self.cloud.node(self.host).await? else {
            return Ok(Fenced::No(self.unknown()));
        };
        // Maintenance comes first: Ironic would switch the node on again within a minute.
        if !node.maintenance {
            let reason = format!("{OURS}: host {}", self.host);
            self.cloud.begin_maintenance(self.host, &reason).await?;
        }
        let mut from = Instant::now();
        for _ in 0..2 {
            from = Instant::now();
            let Some(node) = self.switch(PowerTarget::Off).await? else {
                return Ok(Fenced::NotYet(self.unknown()));
            };
            if shown(&node) != ObservedState::Off || node.last_error.is_some() {
                return Ok(Fenced::NotYet(trouble(&node, "told to be off")));
            }
        }
        let detail = "power off, read by ironic after it was off".to_owned();
        Ok(Fenced::So(ReadBack::new(detail, from)))
    }

    /// Ends our maintenance, and switches the node on.
    ///
    /// # Errors
    /// Ironic is away, or refuses.
    pub async fn switch_on(&self) -> Result<Fenced, BackendError> {
        let Some(node) = self.cloud.node(self.host).await? else {
            return Ok(Fenced::No(self.unknown()));
        };
        if is_our_maintenance(&node) {
            self.cloud.end_maintenance(self.host).await?;
        }
        let from = Instant::now();
        let Some(node) = self.switch(PowerTarget::On).await? else {
            return Ok(Fenced::NotYet(self.unknown()));
        };
        if shown(&node) != ObservedState::On || node.last_error.is_some() {
            return Ok(Fenced::NotYet(trouble(&node, "told to be on")));
        }
        if is_our_maintenance(&node) {
            return Ok(Fenced::NotYet("our maintenance is still there".to_owned()));
        }
        let detail = words(&node);
        Ok(Fenced::So(ReadBack::new(detail, from)))
    }

    /// Tells the node to switch as soon as no other request holds it, and waits until Ironic has finished.
    /// `None` if the node is gone.
    async fn switch(&self, target: PowerTarget) -> Result<Option<Node>, BackendError> {
        (|| self.cloud.set_power(self.host, target))
            .retry(ConstantBuilder::new().with_delay(PAUSE).without_max_times())
            .when(|error| matches!(error, BackendError::Refused { .. }) && self.has_time())
            .await?;
        loop {
            let node = self.cloud.node(self.host).await?;
            if !self.has_time() || node.as_ref().is_none_or(Node::is_idle) {
                return Ok(node);
            }
            sleep(PAUSE).await;
        }
    }
}

fn is_our_maintenance(node: &Node) -> bool {
    node.maintenance && is_our_reason(node.maintenance_reason.as_deref())
}

fn is_our_reason(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.starts_with(OURS))
}

/// Exactly off or on, with no request under way.
fn shown(node: &Node) -> ObservedState {
    state(node.power_state.as_deref(), node.is_idle())
}

fn state(power: Option<&str>, is_idle: bool) -> ObservedState {
    match power {
        Some("power off") if is_idle => ObservedState::Off,
        Some("power on") if is_idle => ObservedState::On,
        _ => ObservedState::Unknown,
    }
}

fn words(node: &Node) -> String {
    let power = node.power_state.as_deref().unwrap_or("no power state");
    match &node.maintenance_reason {
        Some(reason) if node.maintenance => format!("{power}, in maintenance ({reason})"),
        Some(_) | None => power.to_owned(),
    }
}

fn trouble(node: &Node, what: &str) -> String {
    let mut detail = format!("{what}; the node reads as {}", words(node));
    if let Some(target) = &node.target_power_state {
        detail += &format!(", and ironic is switching it to {target}");
    }
    if let Some(who) = &node.reservation {
        detail += &format!(", held by {who}");
    }
    if let Some(error) = &node.last_error {
        detail += &format!("; ironic says: {error}");
    }
    detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_off_and_on_of_an_idle_node_count() {
        assert_eq!(state(Some("power off"), true), ObservedState::Off);
        assert_eq!(state(Some("power on"), true), ObservedState::On);
        assert_eq!(state(Some("error"), true), ObservedState::Unknown);
        assert_eq!(state(None, true), ObservedState::Unknown);
        for held in ["power off", "power on"] {
            assert_eq!(state(Some(held), false), ObservedState::Unknown);
        }
    }

    #[test]
    fn only_our_own_maintenance_is_ours() {
        assert!(is_our_reason(Some("fenced by Ringfence: host a")));
        assert!(!is_our_reason(Some("new disks")));
        assert!(!is_our_reason(None));
    }
}
