//! What the controllers of a newer release do on the out-of-service taint, for a control plane that does not act on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::node_views::{NodeView, NodeViews, OUT_OF_SERVICE};
use super::{ControlPlane, KubeApi};
use crate::error::LabError;

const NODES: &str = "/api/v1/nodes";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "out-of-service";
/// Between two looks at the nodes.
const PERIOD: Duration = Duration::from_millis(200);

/// A stand-in for the parts of the pod garbage collector, the attach-detach controller and the taint manager of release 1.28 that act on the
/// taint. The control plane's own controllers go on beside it. It calls the API as a user of its own, so that what it has changed can be told
/// from what others have. Dropping the value ends it.
#[derive(Debug)]
pub struct OutOfService {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    api: KubeApi,
    /// Between two turns of the pod garbage collector.
    every: Duration,
    behind: Mutex<Duration>,
    turns: AtomicU64,
    is_over: AtomicBool,
}

impl OutOfService {
    /// The name by which the API server knows it.
    pub const USER: &str = "system:serviceaccount:kube-system:out-of-service";

    /// Starts it. The pod garbage collector has a turn so often; every 20 s in production.
    ///
    /// # Errors
    /// If the API server refuses its account.
    pub fn start(plane: &ControlPlane, every: Duration) -> Result<Self, LabError> {
        let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let account = plane.service_account(NAMESPACE, NAME, &rules)?;
        let token = account.token.unwrap_or_default();
        let shared = Arc::new(Shared {
            api: KubeApi::new(plane.url(), &plane.certificate(), &token)?,
            every,
            behind: Mutex::default(),
            turns: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        Ok(Self {
            shared,
            thread: Some(std::thread::spawn(move || of_thread.run())),
        })
    }

    /// From now on, it knows the nodes as they were so long ago, at most 120 s. The real ones act on what a watch has told them, which may be
    /// late, and a turn that has begun goes on with what it has read. Pods are read at once: they have a watch of their own.
    pub fn fall_behind(&self, by: Duration) {
        *self.shared.behind.lock() = by;
    }

    /// How many turns the pod garbage collector has had.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.shared.turns.load(Ordering::SeqCst)
    }
}

impl Drop for OutOfService {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut views = NodeViews::default();
        let mut last_turn = Instant::now();
        while !self.is_over.load(Ordering::SeqCst) {
            // The API server may be down, or refuse what has changed meanwhile: then all is tried again.
            let _ = self.look(&mut views, &mut last_turn);
            std::thread::sleep(PERIOD);
        }
    }

    fn look(&self, views: &mut NodeViews, last_turn: &mut Instant) -> Result<(), LabError> {
        let now = Instant::now();
        let list = self.api.get(NODES)?;
        views.take(&list, now);
        let is_out = |node: &&NodeView| node.is_out_of_service;
        let present: Vec<&NodeView> = views.of(now, Duration::ZERO).iter().filter(is_out).collect();
        let behind = *self.behind.lock();
        let known: Vec<&NodeView> = views.of(now, behind).iter().filter(is_out).collect();
        for node in &known {
            self.detach(&list, node)?;
        }
        if now - *last_turn < self.every {
            return Ok(());
        }
        *last_turn = now;
        let pods = self.api.get("/api/v1/pods")?;
        let pods = pods["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        for pod in pods {
            let is_here = |node: &&&NodeView| pod["spec"]["nodeName"] == node.name.as_str();
            let Some(node) = known.iter().find(is_here) else {
                continue;
            };
            let is_taken_for_tainted = !present.iter().any(|node| is_here(&node));
            // One pod may have gone meanwhile; the others do not wait for it.
            let _ = self.collect(pod, node, is_taken_for_tainted);
        }
        self.turns.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// The attach-detach controller of such a release does not ask for the word of a node with the taint that it uses a volume no more, also
    /// where the node is Ready. Here the control plane's own controller is kept from asking: it detaches at once then what no pod of the node
    /// needs.
    fn detach(&self, nodes: &Value, node: &NodeView) -> Result<(), LabError> {
        let nodes = nodes["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut named = nodes
            .iter()
            .filter(|one| one["metadata"]["name"] == node.name.as_str());
        let in_use = named.next().map(|one| &one["status"]["volumesInUse"]);
        if in_use.and_then(Value::as_array).is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let none = json!({"status": {"volumesInUse": []}});
        self.api
            .patch(&format!("{NODES}/{}/status", node.name), &none)
            .map(|_| ())
    }

    /// The pod garbage collector ends pods that are being removed from a node which it takes for out of service and not Ready. It calls them
    /// Failed, and deletes them at once, whatever they tolerate, and whichever UID they have by then.
    fn collect(&self, pod: &Value, node: &NodeView, is_taken_for_tainted: bool) -> Result<(), LabError> {
        let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods/{}", text("namespace"), text("name"));
        if !pod["metadata"]["deletionTimestamp"].is_string() {
            // What marks them is the taint manager, as the control plane has one. It is behind as well.
            if is_taken_for_tainted && node.evicts && !tolerates(pod) {
                self.api.delete(&path, &json!({}))?;
            }
            return Ok(());
        }
        if node.is_ready {
            return Ok(());
        }
        if pod["status"]["phase"] != "Failed" && pod["status"]["phase"] != "Succeeded" {
            let failed = json!({"status": {"phase": "Failed"}});
            self.api.patch(&format!("{path}/status"), &failed)?;
        }
        self.api
            .delete(&path, &json!({"gracePeriodSeconds": 0}))
            .map(|_| ())
    }
}

fn tolerates(pod: &Value) -> bool {
    let fits = |one: &Value| {
        let is_key = one["key"] == OUT_OF_SERVICE || one["key"].as_str().is_none_or(str::is_empty);
        let effect = one["effect"].as_str().unwrap_or_default();
        is_key && matches!(effect, "" | "NoExecute")
    };
    let all = pod["spec"]["tolerations"].as_array();
    all.is_some_and(|all| all.iter().any(fits))
}
