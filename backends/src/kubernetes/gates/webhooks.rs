//! Whether a cluster has the webhooks as they are shipped, and can trust the certificate of what they ask.

use std::fmt;

use k8s_openapi::api::admissionregistration::v1::{ValidatingWebhook, ValidatingWebhookConfiguration};
use ringfence_core::Timestamp;
use x509_parser::pem::Pem;
use x509_parser::time::ASN1Time;

/// The name of the webhooks' object.
pub(super) const WEBHOOKS: &str = "ringfence";
pub(super) const PODS: &str = "pods.ringfence.io";
pub(super) const ATTACHMENTS: &str = "volumeattachments.ringfence.io";
/// The webhook of a person's word, for clusters without policies. It is left out where no person is to confirm.
pub(super) const CONFIRMATIONS: &str = "confirmations.ringfence.io";

/// What is wrong with a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is not there.
    Missing,
    /// It asks about other requests than the one that is shipped, or lets them through while nothing answers: the field.
    Changed(&'static str),
    /// The certificate of the hook cannot be trusted: why.
    Authority(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("is not installed, and holds nothing"),
            Self::Changed(field) => write!(f, "was changed, and may hold less: its {field} differs"),
            Self::Authority(why) => write!(f, "cannot be asked: its caBundle {why}"),
        }
    }
}

/// The webhook of this name.
pub(super) fn named<'a>(
    all: &'a ValidatingWebhookConfiguration,
    name: &str,
) -> Option<&'a ValidatingWebhook> {
    let mut webhooks = all.webhooks.iter().flatten();
    webhooks.find(|webhook| webhook.name == name)
}

/// What is wrong with this webhook of those that are installed.
pub(super) fn fault(
    installed: &ValidatingWebhookConfiguration,
    shipped: &ValidatingWebhook,
    now: Timestamp,
) -> Option<Fault> {
    let Some(found) = named(installed, &shipped.name) else {
        return Some(Fault::Missing);
    };
    difference(found, shipped)
        .map(Fault::Changed)
        .or_else(|| distrust(found, now).map(Fault::Authority))
}

/// Why the API server can trust no certificate by the webhook's authorities. Without any it trusts those of its machine.
fn distrust(webhook: &ValidatingWebhook, now: Timestamp) -> Option<String> {
    let bundle = &webhook.client_config.ca_bundle.as_ref()?.0;
    if bundle.is_empty() {
        return None;
    }
    let authorities: Vec<Pem> = Pem::iter_from_buffer(bundle).filter_map(Result::ok).collect();
    let faults: Option<Vec<String>> = authorities
        .iter()
        .map(|authority| invalidity(authority, now))
        .collect();
    match faults?.pop() {
        Some(fault) => Some(fault),
        None => Some("has no certificate".to_owned()),
    }
}

/// Why an authority is not valid now.
fn invalidity(authority: &Pem, now: Timestamp) -> Option<String> {
    let Ok(certificate) = authority.parse_x509() else {
        return Some("has a certificate that cannot be read".to_owned());
    };
    let validity = certificate.validity();
    let moment = |at: ASN1Time| Timestamp::from_timestamp(at.timestamp(), 0);
    match (moment(validity.not_before), moment(validity.not_after)) {
        (_, Some(end)) if end < now => Some(format!("has expired on {}", end.format("%F"))),
        (Some(begin), _) if begin > now => Some(format!("is not valid before {}", begin.format("%F"))),
        _ => None,
    }
}

/// The first field that says which requests are asked about, and what holds while nothing answers, which differs. Who is asked, and how long is
/// waited, differs between clusters.
pub(super) fn difference(found: &ValidatingWebhook, shipped: &ValidatingWebhook) -> Option<&'static str> {
    let selects = |webhook: &ValidatingWebhook| {
        let (namespaces, objects) = (&webhook.namespace_selector, &webhook.object_selector);
        (
            namespaces.clone().unwrap_or_default(),
            objects.clone().unwrap_or_default(),
        )
    };
    let has_conditions =
        |webhook: &ValidatingWebhook| webhook.match_conditions.iter().flatten().next().is_some();
    if found.rules != shipped.rules {
        Some("rules")
    } else if found.failure_policy != shipped.failure_policy {
        Some("failurePolicy")
    } else if found.match_policy != shipped.match_policy {
        Some("matchPolicy")
    } else if selects(found) != selects(shipped) {
        Some("namespaceSelector or objectSelector")
    } else if has_conditions(found) {
        Some("matchConditions")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kubernetes::gates::text;

    #[test]
    fn a_webhook_that_asks_about_less_is_seen() {
        let shipped = text::shipped_webhooks().unwrap();
        let shipped = named(&shipped, CONFIRMATIONS).unwrap().clone();
        assert_eq!(shipped.failure_policy.as_deref(), Some("Fail"));
        assert_eq!(difference(&shipped, &shipped), None);
        for (field, value, told) in [
            (
                "rules",
                json!([{ "apiGroups": ["ringfence.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["nodefences"] }]),
                "rules",
            ),
            ("failurePolicy", json!("Ignore"), "failurePolicy"),
            ("matchPolicy", json!("Exact"), "matchPolicy"),
            (
                "objectSelector",
                json!({ "matchLabels": { "a": "b" } }),
                "namespaceSelector or objectSelector",
            ),
            (
                "matchConditions",
                json!([{ "name": "never", "expression": "false" }]),
                "matchConditions",
            ),
        ] {
            let mut changed = serde_json::to_value(&shipped).unwrap();
            changed[field] = value;
            let changed: ValidatingWebhook = serde_json::from_value(changed).unwrap();
            assert_eq!(difference(&changed, &shipped), Some(told));
        }
        // As a cluster fills it in.
        let mut filled = serde_json::to_value(&shipped).unwrap();
        (filled["namespaceSelector"], filled["objectSelector"]) = (json!({}), json!({}));
        (filled["timeoutSeconds"], filled["clientConfig"]["url"]) = (json!(9), json!("https://hook:1/a"));
        let filled: ValidatingWebhook = serde_json::from_value(filled).unwrap();
        assert_eq!(difference(&filled, &shipped), None);
    }
}
