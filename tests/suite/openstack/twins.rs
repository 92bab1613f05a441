//! Two clouds with a host of one name.

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::openstack::{Cloud as Backend, CloudSettings};
use ringfence_engine::ObserverConfig;
use ringfence_tests::clouds_file::{Entry, write};
use ringfence_tests::{FakeNova, Ground, Hypervisor, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{CLOUD, cloud};

const NAME: &str = "twin-a";
const OTHER: &str = "west";

/// The second Nova is simulated: this machine has one real Nova.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_silent_one_of_two_hosts_with_one_name_is_fenced() {
    let east = cloud();
    let [compute] = block_in_place(|| east.computes([NAME]).unwrap());
    let machine = Hypervisor::new(compute);
    let west = FakeNova::start(&[NAME]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clouds.yaml");
    let entries = [
        Entry::new(CLOUD, &east),
        Entry::new(OTHER, &east).nova_at(&west.url()),
    ];
    write(&file, &entries);
    let backend = |name: &str| {
        Arc::new(Backend::new(CloudSettings {
            name: name.to_owned(),
            file: Some(file.clone()),
            timeout: Duration::from_secs(20),
        }))
    };
    let options = StackOptions {
        hosts: 2,
        clouds: vec![backend(CLOUD), backend(OTHER)],
        observer: ObserverConfig {
            every: Duration::from_secs(1),
            down_after: chrono::TimeDelta::seconds(8),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    for (host, cloud) in [("h1", CLOUD), ("h2", OTHER)] {
        let of_cloud = json!({ "backend": "nova", "cloud": cloud, "known_as": NAME });
        client.patch(&format!("/hosts/{host}"), of_cloud).await.ok(200);
        let is_up = |host: &Value| host["failure_state"] == "UP";
        client.until(&format!("/hosts/{host}"), is_up).await;
    }
    let policy = json!({ "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 } });
    client.set_default_policy(policy).await.ok(200);

    machine.kill();
    client.until_fenced("h1").await;
    let answers = west.answers();
    // The other cloud is still observed, and its host stays UP.
    ringfence_tests::eventually(async || west.answers() > answers + 3).await;
    let other = client.host("h2").await;
    assert_eq!(
        (
            &other["failure_state"],
            &other["fencing_state"],
            &other["operation"]
        ),
        (&json!("UP"), &json!("UNFENCED"), &Value::Null)
    );
    stack.stop().await;
    block_in_place(|| machine.remove(&east));
}
