//! Ringfence inside a cluster as the chart installs it: its rights, its configuration and its certificate. Pods cannot run here, so that the
//! replicas are processes with the service account's token.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ringfence_lab::{KubeApi, KubeUser};
use ringfence_tests::{Client, Machine, Service};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{CLUSTER, Cluster, define_objects};
use crate::deploy::{source, text, tool};

/// The namespace of the release, and the release's name.
pub const NAMESPACE: &str = "fencing";
pub const NAME: &str = "ringfence";
/// As in a pod: this process alone sees the files of the account where a kubelet puts them.
const IN_POD: &str = r#"
exec unshare --map-root-user --mount sh -eu -c '
    account=/var/run/secrets/kubernetes.io/serviceaccount
    mount -t tmpfs pod "$(readlink -f /var/run)"
    mkdir -p "$account"
    cp "$HOME"/account/* "$account"
    exec "$@"
' sh "$@"
"#;
const RIGHTS: &str = "/apis/rbac.authorization.k8s.io/v1";

/// What the chart has made of its values, in a cluster.
pub struct Installed {
    documents: Vec<Value>,
    account: KubeUser,
    /// The port of the API server.
    port: String,
    authority: String,
}

/// One replica.
pub struct Replica {
    pub service: Service,
    pub machine: Machine,
    authority: String,
}

/// A cluster in which the chart is installed.
pub fn start() -> (Cluster, Installed) {
    block_in_place(|| {
        let cluster = Cluster::start();
        define_objects(cluster.api());
        let installed = Installed::new(&cluster);
        (cluster, installed)
    })
}

fn render(values: &Value) -> Vec<Value> {
    let home = Machine::new();
    let documents = text(
        Command::new(tool("python"))
            .arg(source("deploy/helm/check/check.py"))
            .arg(tool("go"))
            .arg(values.to_string())
            .env("GOCACHE", home.file("gocache"))
            .env("GOTELEMETRY", "off")
            .env("HOME", home.path()),
    );
    serde_json::from_str(&documents).unwrap()
}

/// Where objects of a kind are made, and whether they are kept: what would start pods is only checked by the API server.
fn place(document: &Value) -> Option<(String, bool)> {
    let namespace = document["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
    let of_core = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    Some(match document["kind"].as_str().unwrap() {
        "ServiceAccount" => (of_core("serviceaccounts"), true),
        "ConfigMap" => (of_core("configmaps"), true),
        "Secret" => (of_core("secrets"), true),
        "ClusterRole" => (format!("{RIGHTS}/clusterroles"), true),
        "ClusterRoleBinding" => (format!("{RIGHTS}/clusterrolebindings"), true),
        "Role" => (format!("{RIGHTS}/namespaces/{namespace}/roles"), true),
        "RoleBinding" => (format!("{RIGHTS}/namespaces/{namespace}/rolebindings"), true),
        "Service" => (of_core("services"), false),
        "Deployment" => (format!("/apis/apps/v1/namespaces/{namespace}/deployments"), false),
        "NetworkPolicy" => (
            format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"),
            false,
        ),
        "ValidatingWebhookConfiguration" => (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations".to_owned(),
            false,
        ),
        other => panic!("{other} is not known here"),
    })
}

fn apply(api: &KubeApi, document: &Value) {
    let Some((path, is_kept)) = place(document) else {
        return;
    };
    let name = document["metadata"]["name"].as_str().unwrap();
    // The rights of health checks are there with the definitions.
    if api.find(&format!("{path}/{name}")).unwrap().is_some() {
        return;
    }
    let query = if is_kept { "" } else { "?dryRun=All" };
    api.post(&format!("{path}{query}"), document).unwrap();
}

impl Installed {
    fn new(cluster: &Cluster) -> Self {
        let values = json!({
            "mode": "inCluster",
            "inCluster": { "cluster": CLUSTER, "downAfterSeconds": 6, "readyForSeconds": 2, "webhooks": { "enabled": true } },
        });
        let documents = render(&values);
        let namespace = json!({ "metadata": { "name": NAMESPACE } });
        cluster.api().post("/api/v1/namespaces", &namespace).unwrap();
        for document in &documents {
            apply(cluster.api(), document);
        }
        let (_, port) = cluster.plane.url().rsplit_once(':').unwrap();
        Self {
            documents,
            account: cluster.plane.token_of(NAMESPACE, NAME).unwrap(),
            port: port.to_owned(),
            authority: cluster.plane.certificate(),
        }
    }

    /// The path of each role of Ringfence, with the role.
    pub fn roles(&self) -> Vec<(String, Value)> {
        let is_own = |document: &&Value| {
            let is_role = matches!(document["kind"].as_str(), Some("ClusterRole" | "Role"));
            is_role && document["metadata"]["name"] == NAME
        };
        let roles = self.documents.iter().filter(is_own);
        roles
            .map(|role| {
                let (path, _) = place(role).unwrap();
                (format!("{path}/{NAME}"), role.clone())
            })
            .collect()
    }

    fn find(&self, kind: &str) -> &Value {
        self.documents.iter().find(|one| one["kind"] == kind).unwrap()
    }

    /// Writes the kubeconfig of the service account.
    pub fn write_kubeconfig(&self, folder: &Path) -> PathBuf {
        let file = folder.join("kubeconfig");
        write_private(&file, &self.account.kubeconfig);
        file
    }

    /// Writes what a kubelet gives to each pod of the account.
    fn write_account(&self, folder: &Path) {
        std::fs::create_dir(folder).unwrap();
        let token = self.account.token.as_deref().unwrap();
        for (name, text) in [
            ("token", token),
            ("ca.crt", &self.authority),
            ("namespace", NAMESPACE),
        ] {
            write_private(&folder.join(name), text);
        }
    }

    pub fn start(&self, name: &str) -> Replica {
        let machine = Machine::new();
        let secret = self.find("Secret");
        let part = |key: &str| {
            let bytes = BASE64_STANDARD.decode(secret["data"][key].as_str().unwrap());
            String::from_utf8(bytes.unwrap()).unwrap()
        };
        for key in ["ca.crt", "tls.crt", "tls.key"] {
            write_private(&machine.file(key), &part(key));
        }
        let configuration = self.find("ConfigMap")["data"]["ringfence.toml"].as_str().unwrap();
        std::fs::write(machine.file("ringfence.toml"), configuration).unwrap();
        self.write_account(&machine.file("account"));
        let path = |name: &str| machine.file(name).display().to_string();
        // What is elsewhere in a pod. Everything else is as the chart has it.
        let variables = [
            ("RINGFENCE_CONFIG", path("ringfence.toml")),
            ("RINGFENCE_DATA_DIR", path("data")),
            ("RINGFENCE_CA_FILE", path("ca.crt")),
            ("RINGFENCE_API_CERTIFICATE_FILE", path("tls.crt")),
            ("RINGFENCE_API_KEY_FILE", path("tls.key")),
            ("KUBERNETES_SERVICE_HOST", "127.0.0.1".to_owned()),
            ("KUBERNETES_SERVICE_PORT", self.port.clone()),
            ("RINGFENCE_ENGINE_NAME", name.to_owned()),
            ("RINGFENCE_LOG_FORMAT", "text".to_owned()),
        ];
        let set = |machine: Machine, (name, value): (&str, String)| machine.set(name, value);
        let machine = variables.into_iter().fold(machine, set).starts_by(IN_POD);
        let service = machine.start(name, &["standalone", "--listen", "127.0.0.1:0"]);
        Replica {
            service,
            machine,
            authority: part("ca.crt"),
        }
    }
}

impl Replica {
    /// Waits until it leads.
    pub async fn client(&mut self) -> Client {
        let url = self.service.until_it_listens("ready").await;
        let token = std::fs::read_to_string(self.machine.file("data/admin.token")).unwrap();
        Client::with_authority(&over_tls(&url), Some(token.trim()), &self.authority)
    }

    /// A client of a replica that waits.
    pub async fn waiting(&mut self) -> Client {
        let waits = "answers that it waits for the lead";
        let url = self.service.until_it_listens(waits).await;
        Client::with_authority(&over_tls(&url), None, &self.authority)
    }
}

/// The certificate has names, and no addresses.
fn over_tls(url: &str) -> String {
    url.replace("http://127.0.0.1", "https://localhost")
}

fn write_private(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
}
