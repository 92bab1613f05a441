//! The attaching part of a volume driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CSI_DRIVER, KubeApi};
use crate::error::LabError;

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
/// The mark by which an attachment is kept until the volume is detached.
const FINALIZER: &str = "external-attacher/csi-lab";
const PERIOD: Duration = Duration::from_millis(100);

/// Attaches and detaches volumes as CSI's external attacher does, for a driver without storage: an attachment is kept by a finalizer,
/// reported as attached, and let go when it is being deleted. A volume is detached from any node that Kubernetes asks for, whether the node
/// uses the volume or not. Dropping the value ends that.
#[derive(Debug)]
pub struct Attacher {
    is_over: Arc<AtomicBool>,
    is_stuck: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attacher {
    /// Starts to serve the attachments of [`CSI_DRIVER`].
    #[must_use]
    pub fn start(api: &KubeApi) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let is_stuck = Arc::new(AtomicBool::new(false));
        let (api, seen, stuck) = (api.clone(), Arc::clone(&is_over), Arc::clone(&is_stuck));
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // The API server may be down: then all is tried again.
                let _ = serve(&api, !stuck.load(Ordering::Relaxed));
                std::thread::sleep(PERIOD);
            }
        });
        Self {
            is_over,
            is_stuck,
            thread: Some(thread),
        }
    }

    /// Whether volumes are detached when Kubernetes asks for it, as from the beginning. An array that is stuck attaches, and detaches nothing.
    pub fn detaches(&self, does: bool) {
        self.is_stuck.store(!does, Ordering::Relaxed);
    }
}

impl Drop for Attacher {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(api: &KubeApi, detaches: bool) -> Result<(), LabError> {
    let list = api.get(ATTACHMENTS)?;
    let all = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    for attachment in all.iter().filter(|one| one["spec"]["attacher"] == CSI_DRIVER) {
        // One attachment may have gone meanwhile; the others do not wait for it.
        let _ = serve_one(api, attachment, detaches);
    }
    Ok(())
}

fn serve_one(api: &KubeApi, attachment: &Value, detaches: bool) -> Result<(), LabError> {
    let name = attachment["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{ATTACHMENTS}/{name}");
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    if attachment["metadata"]["deletionTimestamp"].is_string() {
        if !detaches {
            return Ok(());
        }
        return api.patch(&path, &finalizers(Value::Null)).map(|_| ());
    }
    if attachment["status"]["attached"] == true {
        return Ok(());
    }
    api.patch(&path, &finalizers(json!([FINALIZER])))?;
    let attached = json!({"status": {"attached": true}});
    api.patch(&format!("{path}/status"), &attached).map(|_| ())
}
