//! Masakari's own host monitor, which reports to Ringfence instead of Masakari.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ringfence_tests::{Cloud, Ground, SERVICE_PASSWORD, Site, Stack, StackOptions, power_plan};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// One monitor of a cluster, as Debian packages it.
struct Monitor {
    _process: Child,
    cluster: ChildStdin,
    seen: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
}

impl Monitor {
    fn start(folder: &Path, name: &str, keystone: &str) -> Self {
        let log = folder.join(format!("{name}.log"));
        let settings = folder.join(format!("{name}.conf"));
        let text = format!(
            "[DEFAULT]\nlog_file = {}\n[host]\ndisable_ipmi_check = true\napi_retry_max = 0\n[api]\nauth_type = password\nauth_url = {keystone}/v3\n\
             username = monitor\npassword = {SERVICE_PASSWORD}\nproject_name = service\nuser_domain_id = default\nproject_domain_id = default\n",
            log.display()
        );
        std::fs::write(&settings, text).unwrap();
        let mut process = Command::new("/usr/bin/python3")
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/suite/openstack/host_monitor.py"
            ))
            .arg(&settings)
            .env_remove("PYTHONPATH")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let cluster = process.stdin.take().unwrap();
        let seen = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            _process: process,
            cluster,
            seen,
            log,
        }
    }

    /// Sets the host's state in the monitor's cluster, and waits until the monitor has dealt with it.
    async fn sees(&mut self, host: &str, status: &str) {
        let line = format!("{host} {status}");
        self.cluster
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
        let done = timeout(Duration::from_secs(60), self.seen.next_line()).await;
        let done = done.unwrap().unwrap();
        assert_eq!(done.as_deref(), Some(line.as_str()), "{}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masakaris_host_monitors_drive_ringfence_unchanged() {
    let cloud = Cloud::start(3600).await;
    cloud.user("monitor", "service", &["service"]).await;
    let options = StackOptions {
        keystone: Some(cloud.config()),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    let policy = json!({ "fencing": { "automatic": true, "after_s": 0, "at_most_percent": 100 } });
    client.set_default_policy(policy).await.ok(200);
    let endpoint = format!("{}/v1/%(project_id)s", client.base());
    cloud.endpoint("instance-ha", &endpoint).await;
    client.seen("h1", "UP").await.ok(200);

    let folder = tempfile::tempdir().unwrap();
    let mut first = Monitor::start(folder.path(), "first", &cloud.keystone.url());
    let mut second = Monitor::start(folder.path(), "second", &cloud.keystone.url());
    for monitor in [&mut first, &mut second] {
        monitor.sees("h1", "online").await;
    }
    first.sees("h1", "offline").await;
    assert!(first.log().contains("Response: "), "{}", first.log());
    let host = client.until_fenced("h1").await;
    assert_eq!(host["failure_source"], "masakari");
    // Every node of the cluster reports the host.
    second.sees("h1", "offline").await;
    let ended = "same notification have been already sent";
    assert!(second.log().contains(ended), "{}", second.log());
    let operations = client.get("/operations?host=h1&kind=fence").await.ok(200);
    assert_eq!(operations["operations"].as_array().map(Vec::len), Some(1));

    first.sees("h1", "online").await;
    assert_eq!(client.host("h1").await["failure_state"], "UP");
    stack.stop().await;
}
