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
    thread: Option<JoinHandle<()>>,
}

impl Attacher {
    /// Starts to serve the attachments of [`CSI_DRIVER`].
    #[must_use]
    pub fn start(api: &KubeApi) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (api, seen) = (api.clone(), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                // The API server may be down: then all is tried again.
                let _ = serve(&api);
                std::thread::sleep(PERIOD);
            }
        });
        Self {
            is_over,
            thread: Some(thread),
        }
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

fn serve(api: &KubeApi) -> Result<(), LabError> {
    let list = api.get(ATTACHMENTS)?;
    let all = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    for attachment in all.iter().filter(|one| one["spec"]["attacher"] == CSI_DRIVER) {
        // One attachment may have gone meanwhile; the others do not wait for it.
        let _ = serve_one(api, attachment);
    }
    Ok(())
}

fn serve_one(api: &KubeApi, attachment: &Value) -> Result<(), LabError> {
    let name = attachment["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{ATTACHMENTS}/{name}");
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    if attachment["metadata"]["deletionTimestamp"].is_string() {
        return api.patch(&path, &finalizers(Value::Null)).map(|_| ());
    }
    if attachment["status"]["attached"] == true {
        return Ok(());
    }
    api.patch(&path, &finalizers(json!([FINALIZER])))?;
    let attached = json!({"status": {"attached": true}});
    api.patch(&format!("{path}/status"), &attached).map(|_| ())
}
