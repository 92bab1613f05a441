//! The policies, for one cluster. Their file is the one that the Helm chart holds too.

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;

use super::super::faults;
use crate::BackendError;

const POLICIES: &str = include_str!("../../../../deploy/kubernetes/gates.yaml");
const WEBHOOKS: &str = include_str!("../../../../deploy/kubernetes/webhooks.yaml");

/// The webhooks as they are shipped, with the words of no cluster.
pub(super) fn shipped_webhooks() -> Result<ValidatingWebhookConfiguration, BackendError> {
    // What stands for the authority is no base64.
    let text = WEBHOOKS.replace("RINGFENCE_AUTHORITY", "''");
    serde_saphyr::from_str(&text).map_err(|error| BackendError::Settings {
        platform: faults::label(""),
        why: format!("the webhooks that are shipped cannot be read: {error}"),
    })
}

/// The names that differ between clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateNames {
    /// The cluster's name in the configuration.
    pub cluster: String,
    /// The namespace of the gate object.
    pub namespace: String,
    /// The name of the gate object.
    pub gate: String,
    /// The user that Ringfence authenticates as.
    pub account: String,
}

impl GateNames {
    /// The policies and their bindings as YAML, for a cluster of 1.30 or later.
    ///
    /// # Errors
    /// A name has a character that the policies cannot hold.
    pub fn policies(&self) -> Result<String, BackendError> {
        self.fill(POLICIES)
    }

    /// The webhooks as YAML, for older clusters and for what a policy cannot see. `url` is where the scheduler hook listens, and
    /// `authority` the authority of its certificate, as PEM in base64.
    ///
    /// # Errors
    /// A name has a character that the webhooks cannot hold.
    pub fn webhooks(&self, url: &str, authority: &str) -> Result<String, BackendError> {
        let text = self.fill(WEBHOOKS)?;
        let url = self.checked("the address of the scheduler hook", url.trim_end_matches('/'))?;
        let authority = self.checked("the certificate's authority", authority)?;
        Ok(text
            .replace(
                "RINGFENCE_CLUSTER",
                self.checked("the cluster's name", &self.cluster)?,
            )
            .replace("RINGFENCE_URL", url)
            .replace("RINGFENCE_AUTHORITY", authority))
    }

    fn fill(&self, text: &str) -> Result<String, BackendError> {
        Ok(text
            .replace(
                "RINGFENCE_NAMESPACE",
                self.checked("the namespace", &self.namespace)?,
            )
            .replace(
                "RINGFENCE_GATE",
                self.checked("the gate object's name", &self.gate)?,
            )
            .replace("RINGFENCE_ACCOUNT", self.checked("the account", &self.account)?))
    }

    /// What is written into an expression may not end it.
    fn checked<'a>(&self, what: &str, word: &'a str) -> Result<&'a str, BackendError> {
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || ":._@/-+=[]".contains(sign);
        if !word.is_empty() && word.chars().all(is_plain) {
            return Ok(word);
        }
        Err(BackendError::Settings {
            platform: faults::label(&self.cluster),
            why: format!("{what} is {word:?}; letters, digits and : . _ @ / - + = [ ] are allowed"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(account: &str) -> GateNames {
        GateNames {
            cluster: "east".to_owned(),
            namespace: "fencing".to_owned(),
            gate: "ringfence-gate".to_owned(),
            account: account.to_owned(),
        }
    }

    #[test]
    fn no_word_is_left_to_fill_in() {
        let names = names("system:serviceaccount:fencing:ringfence");
        let policies = names.policies().unwrap();
        let lines = policies.lines().filter(|line| !line.starts_with('#'));
        assert!(lines.clone().any(|line| line.contains("namespace: fencing")));
        assert_eq!(lines.filter(|line| line.contains("RINGFENCE_")).count(), 0);
        let webhooks = names.webhooks("https://[::1]:8791/", "LS0t").unwrap();
        let mut lines = webhooks.lines().filter(|line| !line.starts_with('#'));
        assert!(
            lines
                .clone()
                .any(|line| line.contains("https://[::1]:8791/kubernetes/admission"))
        );
        assert!(lines.all(|line| !line.contains("RINGFENCE_")));
    }

    #[test]
    fn an_account_that_would_end_an_expression_is_refused() {
        for account in ["", "a' || true || 'b", "a b", "a\nb"] {
            assert!(names(account).policies().is_err(), "{account:?}");
        }
    }
}
