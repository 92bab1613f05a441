//! Users with rights of their own.

use serde_json::{Value, json};

use super::ControlPlane;
use crate::error::LabError;

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// A user of the API.
#[derive(Clone, Debug)]
pub struct KubeUser {
    /// The content of a kubeconfig.
    pub kubeconfig: String,
    /// The bearer token, if the user is a service account.
    pub token: Option<String>,
}

impl ControlPlane {
    /// A new user who has a certificate, and in the whole cluster these rights: the `rules` of a `ClusterRole`.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn user(&self, name: &str, rules: &Value) -> Result<KubeUser, LabError> {
        let subject = json!({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"});
        self.grant(name, &subject, rules)?;
        Ok(KubeUser {
            kubeconfig: self.pki().user(name, None)?,
            token: None,
        })
    }

    /// A new service account with these rights in the whole cluster, and its token for an hour.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn service_account(&self, namespace: &str, name: &str, rules: &Value) -> Result<KubeUser, LabError> {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let api = self.api();
        api.post(&accounts, &json!({"metadata": {"name": name}}))?;
        let subject = json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
        self.grant(name, &subject, rules)?;
        self.token_of(namespace, name)
    }

    /// The token of a service account for an hour.
    ///
    /// # Errors
    /// If the API server refuses.
    pub fn token_of(&self, namespace: &str, name: &str) -> Result<KubeUser, LabError> {
        let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
        let answer = self.api().post(
            &format!("{accounts}/{name}/token"),
            &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}),
        )?;
        let token = answer["status"]["token"].as_str().unwrap_or_default().to_owned();
        Ok(KubeUser {
            kubeconfig: self.pki().holder(name, &token),
            token: Some(token),
        })
    }

    fn grant(&self, name: &str, subject: &Value, rules: &Value) -> Result<(), LabError> {
        let api = self.api();
        api.post(ROLES, &json!({"metadata": {"name": name}, "rules": rules}))?;
        let role = json!({"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"});
        api.post(
            BINDINGS,
            &json!({"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}),
        )
        .map(|_| ())
    }
}
