//! A server of a real Nova as a host, which `fence_openstack` stops and starts.

use std::time::Duration;

use ringfence_lab::{OPENSTACK_PASSWORD, User};
use ringfence_tests::Ground;
use serde_json::json;
use tokio::task::block_in_place;

use super::plant::{Plant, until};

const PATIENCE: Duration = Duration::from_secs(120);

impl Plant {
    /// The method, a plan for hosts that are servers, and hosts with these ids of servers.
    async fn fence_servers(&self, hosts: &[(&str, &str)]) {
        let client = &self.stack.client;
        let secret = self.stack.site.dir.path().join("openstack-password");
        std::fs::write(&secret, OPENSTACK_PASSWORD).unwrap();
        let method = json!({
            "name": "openstack", "resource": "power", "driver": "fence-agent",
            "parameters": {
                "agent": "fence_openstack", "auth_url": self.cloud.description().auth_url,
                "username": User::Admin.name(), "project_name": User::Admin.project(), "power_timeout": "40",
            },
            "secrets": { "password": format!("file:{}", secret.display()) },
            "times": { "attempt_timeout_s": 60, "timeout_s": 60, "retries": 0 },
        });
        client.post("/methods", method).await.ok(201);
        let stages = json!([{ "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["openstack"] }] }] }]);
        let plan = json!({ "name": "servers", "scope": { "kind": "host_type", "value": "server" }, "stages": stages });
        client.post("/plans", plan).await.ok(201);
        for (name, id) in hosts {
            let host =
                json!({ "name": name, "type": "server", "parameters": { "openstack": { "plug": id } } });
            client.post("/hosts", host).await.ok(201);
        }
    }

    fn until_status(&self, server: &str, status: &str) {
        until(|| {
            self.cloud
                .server(server)
                .is_ok_and(|server| server.status == status)
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_stopped_by_its_cloud_and_started_again() {
    let plant = Plant::start(Ground::Standalone, ["machines"], json!({})).await;
    let server = plant.boot(0, &["m1"]).remove(0);
    let nowhere = "00000000-0000-4000-8000-000000000000";
    plant.fence_servers(&[("m1", &server), ("m2", nowhere)]).await;
    let client = &plant.stack.client;

    client.fence("m1").await;
    let is_fenced = |host: &serde_json::Value| host["fencing_state"] == "FENCED";
    let host = client.until_within("/hosts/m1", PATIENCE, is_fenced).await;
    assert_eq!(
        block_in_place(|| plant.cloud.server(&server).unwrap()).status,
        "SHUTOFF",
        "{host}"
    );

    let reason = json!({ "reason": "it is wanted again", "boot_confirmed": true });
    client.post("/hosts/m1/rejoin", reason).await.ok(202);
    plant.until_status(&server, "ACTIVE");

    // A server that the cloud does not have.
    client.fence("m2").await;
    let fence = plant.until_ended("m2", "fence").await;
    assert_eq!(fence["status"], "needs_operator", "{fence}");
    assert!(fence.to_string().contains("Not Found"), "{fence}");
    plant.stop().await;
}
