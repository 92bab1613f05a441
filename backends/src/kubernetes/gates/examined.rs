//! What the doctor says of a cluster's gates: whether they are there, and whether each holds a request that changes nothing.

use k8s_openapi::api::admissionregistration::v1::{ValidatingWebhook, ValidatingWebhookConfiguration};
use ringfence_core::Timestamp;

use super::super::Cluster;
use super::installed::{NODE_VOLUMES, get, installed};
use super::webhooks::{self, ATTACHMENTS, CONFIRMATIONS, Fault, WEBHOOKS};
use super::{text, trying};
use crate::{BackendError, GateState, Preflight, SeenGate};

const PAGE: &str = "docs/kubernetes-gates.md";

/// The gates for the checks before they are needed.
pub(in crate::kubernetes) async fn preflight(
    cluster: &Cluster,
    now: Timestamp,
) -> Result<Vec<Preflight>, BackendError> {
    let of = &cluster.settings().name;
    let webhooks = get::<ValidatingWebhookConfiguration>(cluster, WEBHOOKS).await?;
    if !cluster.version().await?.has_policies() {
        return without_policies(cluster, webhooks, now).await;
    }
    let gates = installed(cluster).await?;
    let mut found: Vec<Preflight> = gates.iter().map(|gate| tell(cluster, gate)).collect();
    let holds_volumes = |gate: &SeenGate| gate.name == NODE_VOLUMES && gate.state == GateState::Installed;
    found.extend(forced_detach(of, gates.iter().any(holds_volumes)));
    found.extend(trying::policies(cluster, &gates).await);
    for webhook in shipped()? {
        let fault = webhooks
            .as_ref()
            .and_then(|all| webhooks::fault(all, &webhook, now));
        // Policies stand for those that are left out.
        let fault = fault.filter(|fault| *fault != Fault::Missing);
        found.extend(fault.map(|fault| faulty(of, &webhook.name, &fault)));
    }
    Ok(found)
}

fn shipped() -> Result<Vec<ValidatingWebhook>, BackendError> {
    Ok(text::shipped_webhooks()?.webhooks.unwrap_or_default())
}

/// Webhooks hold there instead.
async fn without_policies(
    cluster: &Cluster,
    webhooks: Option<ValidatingWebhookConfiguration>,
    now: Timestamp,
) -> Result<Vec<Preflight>, BackendError> {
    let of = &cluster.settings().name;
    let Some(webhooks) = webhooks else {
        return Ok([Some(no_webhooks(of)), forced_detach(of, false)]
            .into_iter()
            .flatten()
            .collect());
    };
    let mut found = Vec::new();
    let mut sound = Vec::new();
    for webhook in shipped()? {
        match webhooks::fault(&webhooks, &webhook, now) {
            None => sound.push(webhook.name),
            // A word does not count without it, and need not.
            Some(Fault::Missing) if webhook.name == CONFIRMATIONS => {}
            Some(fault) => found.push(faulty(of, &webhook.name, &fault)),
        }
    }
    found.push(Preflight::Good(format!(
        "{of}: its version has no admission policies; webhooks that are installed and unchanged, and hold while the scheduler hook runs: {}",
        match sound.is_empty() {
            true => "none".to_owned(),
            false => sound.join(", "),
        }
    )));
    found.extend(forced_detach(
        of,
        sound.iter().any(|webhook| webhook == ATTACHMENTS),
    ));
    found.extend(trying::webhooks(cluster, &sound).await);
    Ok(found)
}

fn faulty(of: &str, webhook: &str, fault: &Fault) -> Preflight {
    Preflight::Warning(
        format!("{of}: the webhook {webhook} {fault}"),
        format!(
            "ringfence kubernetes webhooks {of} | kubectl apply -f -, or upgrade the chart; see {PAGE}#webhooks"
        ),
    )
}

fn no_webhooks(of: &str) -> Preflight {
    Preflight::Warning(
        format!("{of}: its version has no admission policies, and no webhook {WEBHOOKS} is installed"),
        format!(
            "ringfence kubernetes webhooks {of} | kubectl apply -f -; or upgrade to 1.30 or later; see {PAGE}"
        ),
    )
}

/// The attach-detach controller does not ask whether a node that was silent for 6 minutes has stopped.
fn forced_detach(of: &str, is_held: bool) -> Option<Preflight> {
    let found = format!(
        "{of}: nothing keeps the cluster from detaching the volumes of a node by force when it was silent for 6 minutes, whether it is FENCED or not"
    );
    let remedy = format!(
        "install the gates; or start kube-controller-manager with --disable-force-detach-on-timeout=true, if its version has that; see {PAGE}"
    );
    (!is_held).then_some(Preflight::Warning(found, remedy))
}

fn tell(cluster: &Cluster, gate: &SeenGate) -> Preflight {
    let (of, name) = (&cluster.settings().name, gate.name);
    let apply = format!("ringfence kubernetes gates {of} | kubectl apply -f -; see {PAGE}");
    match &gate.state {
        GateState::Installed => Preflight::Good(format!("{of}: the gate {name} is installed and unchanged")),
        GateState::Missing => Preflight::Warning(
            format!("{of}: the gate {name} is not installed, and holds nothing"),
            apply,
        ),
        GateState::Changed(what) => {
            Preflight::Warning(format!("{of}: the gate {name} was changed: {what}"), apply)
        }
        GateState::NotAvailable => {
            Preflight::Warning(format!("{of}: the gate {name} is not available"), PAGE.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_detaches_volumes_by_force_is_told_of() {
        let Some(Preflight::Warning(found, remedy)) = forced_detach("east", false) else {
            panic!("no warning");
        };
        assert!(
            found.starts_with("east: ") && found.contains("6 minutes"),
            "{found}"
        );
        assert!(
            remedy.contains("--disable-force-detach-on-timeout=true"),
            "{remedy}"
        );
        assert_eq!(forced_detach("east", true), None);
    }
}
