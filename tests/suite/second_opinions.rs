//! What a worker elsewhere finds out before a host is fenced by itself: the host answers it, or it is cut off itself.

use ringfence_core::Resource;
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

crate::on_both_grounds!(
    a_switch_that_fails_for_the_monitor_alone_has_no_host_fenced,
    a_worker_that_is_cut_off_has_no_host_fenced,
);

/// Something that listens until it is switched off.
struct Service {
    address: String,
    off: CancellationToken,
}

impl Service {
    async fn start(greeting: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let off = CancellationToken::new();
        let stop = off.clone();
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                drop(stream.write_all(greeting.as_bytes()).await);
            }
        }));
        Self { address, off }
    }
}

/// How a worker finds out whether a host answers.
fn opinion(host: &Service, references: &str) -> Value {
    let parameters = json!({
        "address": host.address, "references": references, "banner": "SSH-", "at_least": "1", "wait_s": "1",
    });
    json!({
        "name": "ssh", "resource": Resource::Query.as_str(), "driver": "reach", "parameters": parameters,
    })
}

async fn with_second_opinion(ground: Ground, host: &Service, references: &str) -> Stack {
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    stack.plan(power_plan()).await;
    let method = opinion(host, references);
    stack.client.post("/methods", method).await.ok(201);
    let fencing =
        json!({ "automatic": true, "after_s": 0, "at_most": 10, "at_most_percent": 100, "queries": ["ssh"] });
    let policy = json!({ "fencing": fencing, "settle_s": 1 });
    stack.client.set_default_policy(policy).await.ok(200);
    stack
}

fn reason(held: &Value) -> &str {
    held["held"]["by"][0]["reason"].as_str().unwrap()
}

/// The monitor does not see the host, and a worker elsewhere does. Once the host is gone for the worker, too, it is fenced.
async fn a_switch_that_fails_for_the_monitor_alone_has_no_host_fenced(ground: Ground) {
    let (ssh, gateway) = (Service::start("SSH-2.0-x\r\n").await, Service::start("").await);
    let stack = with_second_opinion(ground, &ssh, &gateway.address).await;
    stack.hang("h1").await;
    let held = stack
        .until_held("query", "h1", "hold", "answers: SSH-2.0-x")
        .await;
    assert_eq!(
        reason(&held),
        format!("query ssh holds it: {} answers: SSH-2.0-x", ssh.address)
    );
    ssh.off.cancel();
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    stack.stop().await;
}

/// No reference answers the worker: that the host does not answer it says nothing.
async fn a_worker_that_is_cut_off_has_no_host_fenced(ground: Ground) {
    let (hung, gateway) = (Service::start("").await, Service::start("").await);
    let stack = with_second_opinion(ground, &hung, "gateway.invalid:22,storage.invalid:3260").await;
    stack.hang("h1").await;
    let words = "0 of 2 references answer, and 1 have to: the worker may be cut off itself";
    stack.until_held("query", "h1", "unknown", words).await;
    let seen = opinion(&hung, &gateway.address);
    stack.client.put("/methods/ssh", seen).await.ok(200);
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    stack.stop().await;
}
