//! Whether the cluster lets a person's word in a `NodeFence` be written by the person alone, and since when.

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use kube::core::ObjectMeta;
use ringfence_core::Timestamp;

use super::super::Cluster;
use super::installed::{compare, documents, get, shipped};
use super::text;
use super::webhooks::{CONFIRMATIONS, WEBHOOKS, difference, named};
use crate::{BackendError, GateState};

/// The policy, and its binding.
pub(super) const POLICY: &str = "ringfence-confirmations";

/// Whether a word is checked before it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordGate {
    /// Each word that was written since is checked: what checks it was not changed since then.
    Holds {
        /// The last change of the policy, its binding or the webhook, by the API server's clock.
        since: Timestamp,
    },
    /// Everyone who may write a `NodeFence` can write a word under every name. Why it is so.
    Open(String),
}

impl Cluster {
    /// Whether a person's word is checked before it is written, as the cluster is now: by the policy, or else by the webhook.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub async fn word_gate(&self) -> Result<WordGate, BackendError> {
        match self.seen_word_gate().await {
            Err(BackendError::Denied { why, .. }) => Ok(WordGate::Open(format!(
                "Ringfence may not see what checks it: {why}"
            ))),
            seen => seen,
        }
    }

    async fn seen_word_gate(&self) -> Result<WordGate, BackendError> {
        let by_policy = self.by_policy().await?;
        match by_policy {
            WordGate::Holds { .. } => Ok(by_policy),
            WordGate::Open(no_policy) => Ok(match self.by_webhook().await? {
                WordGate::Open(no_webhook) => WordGate::Open(format!("{no_policy}, and {no_webhook}")),
                holds => holds,
            }),
        }
    }

    async fn by_policy(&self) -> Result<WordGate, BackendError> {
        if !self.version().await?.has_policies() {
            let why = "the cluster's version has no admission policies";
            return Ok(WordGate::Open(why.to_owned()));
        }
        // The policy names no account.
        let documents = documents(&self.names("none"))?;
        let state = compare(self, POLICY, &shipped(self, &documents, POLICY)?).await?;
        if let GateState::Changed(what) = state {
            return Ok(WordGate::Open(format!("the policy {POLICY} was changed: {what}")));
        }
        let policy = get::<ValidatingAdmissionPolicy>(self, POLICY).await?;
        let binding = get::<ValidatingAdmissionPolicyBinding>(self, POLICY).await?;
        let changed = [
            policy.and_then(|policy| changed_at(&policy.metadata)),
            binding.and_then(|binding| changed_at(&binding.metadata)),
        ];
        Ok(match (state, changed) {
            (GateState::Installed, [Some(policy), Some(binding)]) => WordGate::Holds {
                since: policy.max(binding),
            },
            _ => WordGate::Open(format!("the policy {POLICY} is not installed")),
        })
    }

    async fn by_webhook(&self) -> Result<WordGate, BackendError> {
        let installed = get::<ValidatingWebhookConfiguration>(self, WEBHOOKS).await?;
        let since = installed.as_ref().and_then(|all| changed_at(&all.metadata));
        let shipped = text::shipped_webhooks()?;
        let found = installed.as_ref().and_then(|all| named(all, CONFIRMATIONS));
        Ok(match (found, named(&shipped, CONFIRMATIONS), since) {
            (Some(found), Some(shipped), Some(since)) => match difference(found, shipped) {
                None => WordGate::Holds { since },
                Some(field) => WordGate::Open(format!("{field} of the webhook {CONFIRMATIONS} was changed")),
            },
            _ => WordGate::Open(format!("the webhook {CONFIRMATIONS} is not installed")),
        })
    }
}

/// Whether the webhook is there; `false` also where that cannot be seen.
pub(in crate::kubernetes) async fn has_word_webhook(cluster: &Cluster) -> bool {
    let installed = get::<ValidatingWebhookConfiguration>(cluster, WEBHOOKS).await;
    installed
        .ok()
        .flatten()
        .is_some_and(|all| named(&all, CONFIRMATIONS).is_some())
}

/// When an object was made or last changed, apart from its status.
fn changed_at(of: &ObjectMeta) -> Option<Timestamp> {
    let made = of
        .creation_timestamp
        .as_ref()
        .and_then(|made| timestamp(&made.0))?;
    Some(last_written(of, &[]).map_or(made, |written| written.max(made)))
}

/// When a field of an object was last written, by the API server's clock: the names of the fields on the way to it; none for any field. `None` if
/// the API server does not tell.
#[must_use]
pub fn last_written(of: &ObjectMeta, field: &[&str]) -> Option<Timestamp> {
    let writes = of.managed_fields.iter().flatten();
    let of_object = writes.filter(|write| write.subresource.as_deref().unwrap_or_default().is_empty());
    let of_field = of_object.filter(|write| {
        let mut fields = write.fields_v1.as_ref().map(|fields| &fields.0);
        for name in field {
            fields = fields.and_then(|fields| fields.get(format!("f:{name}")));
        }
        fields.is_some()
    });
    of_field
        .filter_map(|write| timestamp(&write.time.as_ref()?.0))
        .max()
}

fn timestamp(at: &k8s_openapi::jiff::Timestamp) -> Option<Timestamp> {
    let nanoseconds = u32::try_from(at.subsec_nanosecond()).ok()?;
    Timestamp::from_timestamp(at.as_second(), nanoseconds)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(writes: Value) -> ObjectMeta {
        serde_json::from_value(json!({
            "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": writes,
        }))
        .unwrap()
    }

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    #[test]
    fn the_last_change_of_an_object_is_that_of_any_field_but_its_status() {
        let write = |time: &str, subresource: &str| {
            json!({ "manager": "m", "operation": "Update", "time": time, "subresource": subresource,
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:reason": {} } } })
        };
        let writes = json!([
            write("2026-01-02T00:00:00Z", ""),
            write("2026-01-03T00:00:00Z", ""),
            write("2026-01-04T00:00:00Z", "status"),
        ]);
        assert_eq!(changed_at(&written(writes)), Some(at("2026-01-03T00:00:00Z")));
        assert_eq!(
            changed_at(&written(Value::Null)),
            Some(at("2026-01-01T00:00:00Z"))
        );
    }

    #[test]
    fn when_a_field_was_written_is_told_by_the_write_that_has_it() {
        let write = |time: &str, field: &str| {
            json!({ "manager": "m", "operation": "Update", "time": time, "fieldsType": "FieldsV1",
                "fieldsV1": { "f:spec": { field: {} } } })
        };
        let object = written(json!([
            write("2026-01-02T00:00:00Z", "f:confirmation"),
            write("2026-01-03T00:00:00Z", "f:suspend"),
        ]));
        let of = |field: &str| last_written(&object, &["spec", field]);
        assert_eq!(of("confirmation"), Some(at("2026-01-02T00:00:00Z")));
        assert_eq!(of("plan"), None);
    }
}
