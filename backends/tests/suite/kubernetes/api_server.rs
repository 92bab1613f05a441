//! A stand-in for an API server: it serves the objects that a test gives it, and asks the policies that it serves about requests which it
//! is told not to carry out. It carries out none.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use parking_lot::{Mutex, MutexGuard};
use ringfence_backends::kubernetes::{Cluster, ClusterSettings, ClusterUses, VolumeSettings};
use ringfence_backends::{Platform, Preflight};
use ringfence_core::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::served::as_served;
use crate::gates::policies::{RINGFENCE, judge_by};

pub const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
pub const GATE_OBJECT: &str = "/api/v1/namespaces/ringfence/configmaps/ringfence-gate";
/// The name of every cluster of these tests.
pub const CLUSTER: &str = "east";
/// Longer than an answer of this machine takes while others build on it.
const PATIENCE: Duration = Duration::from_secs(20);

/// What it answers.
pub struct Answers {
    /// The answer to the question for its version.
    pub version: Value,
    /// The time of its clock; `None` for answers without a date.
    pub date: Option<Timestamp>,
    /// Groups of the API beside Kubernetes' own.
    pub groups: Vec<&'static str>,
    /// The rights that are not granted, as `VERB RESOURCE`.
    pub denied: Vec<&'static str>,
    /// The groups of the user who asks.
    pub user_groups: Vec<&'static str>,
    /// Whether it asks its policies. An API server can be started without.
    pub asks_policies: bool,
    /// What it answers to every question of this method instead: status, type of the content, content. An empty method is every one.
    pub instead: Option<(&'static str, u16, &'static str, String)>,
    /// What the user may not read.
    pub hidden: Vec<&'static str>,
    /// Whether it describes its objects' fields as releases before 1.24 do.
    pub describes_v2: bool,
    objects: BTreeMap<String, Value>,
    /// The lines of the requests.
    asked: Vec<String>,
}

impl Answers {
    /// Keeps an object as an API server does, which fills in the fields that are left out.
    pub fn put(&mut self, path: &str, object: Value) {
        self.objects.insert(path.to_owned(), as_served(object));
    }

    pub fn take(&mut self, path: &str) -> Value {
        self.objects.remove(path).unwrap()
    }

    /// Changes one field of an object.
    pub fn change(&mut self, path: &str, pointer: &str, value: Value) {
        let object = self.objects.get_mut(path).unwrap();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[field] = value;
    }

    pub fn get(&self, path: &str) -> Option<&Value> {
        self.objects.get(path)
    }

    pub fn install(&mut self, documents: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(documents).unwrap();
        for document in documents {
            let path = place(&document);
            self.put(&path, document);
        }
    }
}

/// Where an object is.
pub fn place(document: &Value) -> String {
    let name = document["metadata"]["name"].as_str().unwrap();
    match document["kind"].as_str().unwrap() {
        "ValidatingAdmissionPolicy" => policy(name),
        "ValidatingAdmissionPolicyBinding" => binding(name),
        "ValidatingWebhookConfiguration" => format!("{ADMISSION}/validatingwebhookconfigurations/{name}"),
        "CustomResourceDefinition" => {
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
        }
        "Node" => format!("/api/v1/nodes/{name}"),
        "Pod" => format!("/api/v1/namespaces/default/pods/{name}"),
        "VolumeAttachment" => format!("/apis/storage.k8s.io/v1/volumeattachments/{name}"),
        "NodeFence" => format!("/apis/ringfence.io/v1alpha1/nodefences/{name}"),
        other => panic!("{other} is not known here"),
    }
}

pub fn policy(name: &str) -> String {
    format!("{ADMISSION}/validatingadmissionpolicies/{name}")
}

pub fn binding(name: &str) -> String {
    format!("{ADMISSION}/validatingadmissionpolicybindings/{name}")
}

/// One request.
struct Asked {
    method: String,
    path: String,
    query: String,
    body: Value,
}

/// The stand-in, and a kubeconfig for it.
pub struct ApiServer {
    answers: Arc<Mutex<Answers>>,
    url: String,
    serving: JoinHandle<()>,
    folder: TempDir,
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl ApiServer {
    /// One of this release: 1.N.
    pub async fn start(minor: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(Answers {
            version: release("1", &minor.to_string()),
            date: None,
            groups: Vec::new(),
            denied: Vec::new(),
            user_groups: vec!["system:serviceaccounts", "system:authenticated"],
            asks_policies: true,
            instead: None,
            hidden: Vec::new(),
            describes_v2: minor < 24,
            objects: BTreeMap::new(),
            asked: Vec::new(),
        }));
        let serving = tokio::spawn(serve(listener, Arc::clone(&answers)));
        let folder = tempfile::tempdir().unwrap();
        let server = Self {
            answers,
            url,
            serving,
            folder,
        };
        server.write_kubeconfig(0o600);
        server
    }

    pub fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock()
    }

    /// Ends it: its port answers no more.
    pub async fn stop(&mut self) {
        self.serving.abort();
        assert!((&mut self.serving).await.unwrap_err().is_cancelled());
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    pub fn write_kubeconfig(&self, mode: u32) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{ "name": "c", "cluster": { "server": self.url } }],
            "users": [{ "name": "u", "user": { "token": "t" } }],
            "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
        });
        std::fs::write(self.kubeconfig(), kubeconfig.to_string()).unwrap();
        std::fs::set_permissions(self.kubeconfig(), PermissionsExt::from_mode(mode)).unwrap();
    }

    pub fn cluster(&self, uses: ClusterUses) -> Cluster {
        Cluster::new(ClusterSettings {
            name: CLUSTER.to_owned(),
            kubeconfig: Some(self.kubeconfig()),
            context: None,
            namespace: "ringfence".to_owned(),
            fenced_storage: Vec::new(),
            gate: "ringfence-gate".to_owned(),
            timeout: PATIENCE,
            down_after: Duration::from_secs(20),
            ready_for: Duration::ZERO,
            volumes: VolumeSettings {
                label: None,
                ..VolumeSettings::default()
            },
            uses,
        })
    }

    /// What the doctor finds.
    pub async fn examined(&self) -> Found {
        self.examined_as(ClusterUses::default()).await
    }

    pub async fn examined_as(&self, uses: ClusterUses) -> Found {
        Found(self.cluster(uses).preflight(noon()).await)
    }

    /// No request was one to be carried out.
    pub fn assert_nothing_was_changed(&self) {
        let is_carried_out = |line: &&String| line.starts_with("carried out");
        let answers = self.answers();
        let carried_out: Vec<_> = answers.asked.iter().filter(is_carried_out).collect();
        assert!(carried_out.is_empty(), "{carried_out:?}");
    }

    pub fn was_asked(&self, part: &str) -> bool {
        self.answers().asked.iter().any(|line| line.contains(part))
    }
}

/// The time of this machine's clock in these tests.
pub fn noon() -> Timestamp {
    "2026-11-26T12:00:00Z".parse().unwrap()
}

pub fn release(major: &str, minor: &str) -> Value {
    json!({
        "major": major, "minor": minor, "gitVersion": format!("v{major}.{minor}.2"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "go", "compiler": "gc", "platform": "linux/amd64",
    })
}

/// What the doctor has found.
#[derive(Debug)]
pub struct Found(pub Vec<Preflight>);

impl Found {
    fn with<'a>(all: impl Iterator<Item = (&'a String, &'a String)>, part: &str) -> Vec<(String, String)> {
        let of_part = all.filter(|(told, _)| told.contains(part));
        of_part
            .map(|(told, remedy)| (told.clone(), remedy.clone()))
            .collect()
    }

    /// The warnings that say this, each with what to do.
    pub fn warnings(&self, part: &str) -> Vec<(String, String)> {
        let all = self.0.iter().filter_map(|found| match found {
            Preflight::Warning(told, remedy) => Some((told, remedy)),
            Preflight::Good(_) | Preflight::Failure(..) => None,
        });
        Self::with(all, part)
    }

    /// The failures that say this, each with what to do.
    pub fn failures(&self, part: &str) -> Vec<(String, String)> {
        let all = self.0.iter().filter_map(|found| match found {
            Preflight::Failure(told, remedy) => Some((told, remedy)),
            Preflight::Good(_) | Preflight::Warning(..) => None,
        });
        Self::with(all, part)
    }

    #[track_caller]
    pub fn warning(&self, part: &str) -> (String, String) {
        let [one] = self
            .warnings(part)
            .try_into()
            .unwrap_or_else(|all| panic!("{part}: {all:?} of {self:#?}"));
        one
    }

    #[track_caller]
    pub fn failure(&self, part: &str) -> (String, String) {
        let [one] = self
            .failures(part)
            .try_into()
            .unwrap_or_else(|all| panic!("{part}: {all:?} of {self:#?}"));
        one
    }

    /// The one good finding that says this.
    #[track_caller]
    pub fn good(&self, part: &str) -> &str {
        let good = self.0.iter().filter_map(|found| match found {
            Preflight::Good(told) if told.contains(part) => Some(told.as_str()),
            _ => None,
        });
        let good: Vec<&str> = good.collect();
        let [one] = good
            .try_into()
            .unwrap_or_else(|all| panic!("{part}: {all:?} of {self:#?}"));
        one
    }
}

async fn serve(listener: TcpListener, answers: Arc<Mutex<Answers>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        connections.spawn(converse(connection, Arc::clone(&answers)));
    }
}

async fn converse(connection: TcpStream, answers: Arc<Mutex<Answers>>) -> Option<()> {
    let mut connection = BufReader::new(connection);
    loop {
        let asked = read(&mut connection).await?;
        let answer = answers.lock().to(&asked);
        connection.get_mut().write_all(answer.as_bytes()).await.ok()?;
    }
}

/// The next request of a connection.
async fn read(connection: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    connection.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut length = 0;
    loop {
        let mut header = String::new();
        connection.read_line(&mut header).await.ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Asked {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code,
    });
    (code, status)
}

impl Answers {
    fn to(&mut self, asked: &Asked) -> String {
        self.asked.push(format!("{} {}", asked.method, asked.path));
        if let Some((method, code, kind, text)) = &self.instead
            && (method.is_empty() || *method == asked.method)
        {
            return self.written(*code, kind, text);
        }
        let (code, answer) = match asked.method.as_str() {
            "GET" => self.read(&asked.path),
            "POST" => self.review(asked),
            _ => self.try_out(asked),
        };
        self.written(code, "application/json", &answer.to_string())
    }

    fn written(&self, code: u16, kind: &str, text: &str) -> String {
        let date = self
            .date
            .map(|date| format!("Date: {}\r\n", date.format("%a, %d %b %Y %H:%M:%S GMT")));
        format!(
            "HTTP/1.1 {code} Told\r\nContent-Type: {kind}\r\n{}Content-Length: {}\r\n\r\n{text}",
            date.unwrap_or_default(),
            text.len()
        )
    }

    fn read(&self, path: &str) -> (u16, Value) {
        match path {
            _ if self.hidden.contains(&path) => {
                status(403, "Forbidden", &format!("User \"u\" cannot read {path}"))
            }
            // As an API server does.
            "/openapi/v3/apis/ringfence.io/v1alpha1" if self.describes_v2 => {
                (404, json!({ "paths": ["/apis"] }))
            }
            "/version" => (200, self.version.clone()),
            "/apis" => (200, self.group_list()),
            "/openapi/v2" if self.describes_v2 => (200, json!({ "definitions": self.schemas("v1alpha1") })),
            "/openapi/v3/apis/ringfence.io/v1alpha1" if !self.describes_v2 => (
                200,
                json!({ "components": { "schemas": self.schemas("v1alpha1") } }),
            ),
            "/apis/ringfence.io/v1alpha1" if !self.defined("v1alpha1").is_empty() => {
                (200, self.resource_list())
            }
            _ => match self.objects.get(path) {
                Some(object) => (200, object.clone()),
                None => self.list(path),
            },
        }
    }

    fn group_list(&self) -> Value {
        let group = |name: &&str| {
            let version = json!({ "groupVersion": format!("{name}/v1alpha1"), "version": "v1alpha1" });
            json!({ "name": name, "versions": [version], "preferredVersion": version })
        };
        let mut groups: Vec<Value> = ["apps", "storage.k8s.io"]
            .iter()
            .chain(&self.groups)
            .map(group)
            .collect();
        for version in ["v1alpha1", "v1beta1"] {
            if !self.defined(version).is_empty() {
                let version =
                    json!({ "groupVersion": format!("ringfence.io/{version}"), "version": version });
                groups.push(
                    json!({ "name": "ringfence.io", "versions": [version], "preferredVersion": version }),
                );
            }
        }
        json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
    }

    /// The definitions that have this version alone.
    fn defined(&self, version: &str) -> Vec<&Value> {
        let is_one = |one: &&Value| {
            one["kind"] == "CustomResourceDefinition" && one["spec"]["versions"][0]["name"] == version
        };
        self.objects.values().filter(is_one).collect()
    }

    fn resource_list(&self) -> Value {
        let mut resources = Vec::new();
        for definition in self.defined("v1alpha1") {
            let (names, version) = (&definition["spec"]["names"], &definition["spec"]["versions"][0]);
            let plural = names["plural"].as_str().unwrap();
            let mut add = |name: &str| {
                resources.push(json!({
                    "name": name, "kind": names["kind"], "singularName": names["singular"], "namespaced": false, "verbs": ["get"],
                }));
            };
            add(plural);
            if !version["subresources"]["status"].is_null() {
                add(&format!("{plural}/status"));
            }
        }
        json!({ "kind": "APIResourceList", "groupVersion": "ringfence.io/v1alpha1", "resources": resources })
    }

    /// The fields of the objects that are defined.
    fn schemas(&self, version: &str) -> Value {
        let mut schemas = json!({ "io.k8s.api.core.v1.Pod": { "type": "object" } });
        for definition in self.defined(version) {
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap();
            let mut schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            schema["x-kubernetes-group-version-kind"] =
                json!([{ "group": "ringfence.io", "kind": kind, "version": version }]);
            schemas[format!("io.ringfence.{version}.{kind}")] = schema;
        }
        schemas
    }

    /// The objects of a collection, also of all namespaces.
    fn list(&self, path: &str) -> (u16, Value) {
        let plural = path.rsplit('/').next().unwrap();
        if !["pods", "nodes", "volumeattachments", "nodefences"].contains(&plural) {
            return status(404, "NotFound", &format!("{path} not found"));
        }
        let is_in = |one: &&String| one.rsplit('/').nth(1) == Some(plural);
        let items: Vec<&Value> = self
            .objects
            .iter()
            .filter(|(one, _)| is_in(one))
            .map(|(_, object)| object)
            .collect();
        (
            200,
            json!({ "kind": "List", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": items }),
        )
    }

    /// What a user asks about the user's own rights and name.
    fn review(&self, asked: &Asked) -> (u16, Value) {
        let mut review = asked.body.clone();
        review["status"] = if asked.path.ends_with("selfsubjectreviews") {
            json!({ "userInfo": { "username": RINGFENCE, "groups": self.user_groups } })
        } else {
            let of = &review["spec"]["resourceAttributes"];
            let right = format!(
                "{} {}",
                of["verb"].as_str().unwrap(),
                of["resource"].as_str().unwrap()
            );
            json!({ "allowed": !self.denied.contains(&right.as_str()) })
        };
        (201, review)
    }

    /// A deletion or a change that is not carried out.
    fn try_out(&mut self, asked: &Asked) -> (u16, Value) {
        let is_dry = asked.query.contains("dryRun=All") || asked.body["dryRun"] == json!(["All"]);
        if !is_dry {
            self.asked
                .push(format!("carried out: {} {}", asked.method, asked.path));
        }
        let (path, sub) = match asked.path.strip_suffix("/status") {
            Some(path) => (path, "/status"),
            None => (asked.path.as_str(), ""),
        };
        let Some(old) = self.objects.get(path).cloned() else {
            return status(404, "NotFound", &format!("{path} not found"));
        };
        let request = self.request(asked, path, sub, &old);
        match self.judged(&request) {
            Some(refusal) => refusal,
            None => (
                200,
                if asked.method == "PATCH" {
                    request["object"].clone()
                } else {
                    old
                },
            ),
        }
    }

    /// The request as its policies see it.
    fn request(&self, asked: &Asked, path: &str, sub: &str, old: &Value) -> Value {
        let plural = path.rsplit('/').nth(1).unwrap();
        let (operation, new, options) = match asked.method.as_str() {
            "DELETE" => ("DELETE", Value::Null, asked.body.clone()),
            "PATCH" => {
                let mut new = old.clone();
                json_patch::merge(&mut new, &asked.body);
                ("UPDATE", new, json!({ "kind": "PatchOptions" }))
            }
            other => panic!("{other} is not known here"),
        };
        let mut request = crate::gates::requests::request(
            RINGFENCE,
            operation,
            &format!("{plural}{sub}"),
            [old.clone(), new],
        );
        request["options"] = options;
        request["userInfo"]["groups"] = json!(self.user_groups);
        request
    }

    /// The refusal, in the words of an API server.
    fn judged(&self, request: &Value) -> Option<(u16, Value)> {
        if !self.asks_policies {
            return None;
        }
        let gate = self.objects.get(GATE_OBJECT).map(|gate| &gate["data"]);
        let verdict = judge_by(&self.bound(), request, gate);
        let (name, told) = verdict.denials.first()?;
        let (resource, of) = (
            &request["resource"]["resource"],
            &request["oldObject"]["metadata"]["name"],
        );
        let message = format!(
            "{} {of} is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {told}",
            resource.as_str().unwrap()
        );
        Some(status(422, "Invalid", &message))
    }

    /// The policies that it has, each with its binding.
    fn bound(&self) -> Vec<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)> {
        let all = self
            .objects
            .values()
            .filter(|one| one["kind"] == "ValidatingAdmissionPolicy");
        let bound = all.filter_map(|one| {
            let of = self.objects.get(&binding(one["metadata"]["name"].as_str()?))?;
            Some((typed(one), typed(of)))
        });
        bound.collect()
    }
}

fn typed<K: DeserializeOwned>(object: &Value) -> K {
    serde_json::from_value(object.clone()).unwrap()
}
