//! A real Ceph, whose monitors are where Rook says in a real cluster.

use std::sync::Arc;

use ringfence_backends::kubernetes::Cluster;
use ringfence_core::{FrozenMethod, ObservedState, Resource};
use ringfence_lab::{Ceph, ControlPlane, ControlPlaneOptions, KubernetesPrograms};
use ringfence_workers::{DriverSettings, Drivers};
use serde_json::{Value, json};

use super::settings;
use crate::ceph::{keyring, programs};
use crate::{clock, method, seconds};

const MAPS: &str = "/api/v1/namespaces/rook-ceph/configmaps";

fn rooks(namespace: &str) -> FrozenMethod {
    let parameters = [
        ("addresses", "192.0.2.7"),
        ("cluster", "lab"),
        ("namespace", namespace),
    ];
    method("ceph", Resource::Storage, &parameters)
}

fn endpoints(listed: &str) -> Value {
    json!({ "metadata": { "name": "rook-ceph-mon-endpoints" }, "data": { "data": listed, "maxMonId": "0" } })
}

#[tokio::test]
async fn the_monitors_of_rooks_ceph_are_read_where_rook_keeps_them() {
    let ceph = Ceph::start(&programs()).unwrap();
    let kubernetes = KubernetesPrograms::from_environment().expect(
        "RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test` or `cargo xtask lab`",
    );
    let plane = ControlPlane::start(&kubernetes, ControlPlaneOptions::default()).unwrap();
    let api = plane.api();
    api.post(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "rook-ceph" } }),
    )
    .unwrap();
    let drivers = DriverSettings {
        ceph: ceph.program(),
        clusters: vec![Arc::new(Cluster::new(settings(plane.kubeconfig())))],
        ..DriverSettings::new(clock())
    };
    let driver = Drivers::new(&drivers).get("ceph").unwrap();
    let secrets = keyring(&ceph.keyring().unwrap());
    let observe = async |method: &FrozenMethod| {
        let observed = driver.observe(method, &secrets, seconds(20)).await;
        observed
            .map(|observation| observation.state)
            .map_err(|why| why.to_string())
    };

    let none = observe(&rooks("rook-ceph")).await.unwrap_err();
    assert!(
        none.contains("namespace rook-ceph has no ConfigMap rook-ceph-mon-endpoints"),
        "{none}"
    );
    api.post(MAPS, &endpoints("")).unwrap();
    let empty = observe(&rooks("rook-ceph")).await.unwrap_err();
    assert!(empty.contains("lists no monitors in its key data"), "{empty}");
    // A monitor has moved.
    let moved = endpoints(&format!("a={}", ceph.monitor().trim_start_matches("v2:")));
    api.patch(&format!("{MAPS}/rook-ceph-mon-endpoints"), &moved)
        .unwrap();
    assert_eq!(observe(&rooks("rook-ceph")).await, Ok(ObservedState::Unfenced));
    let mut nameless = rooks("rook-ceph");
    nameless.parameters.remove("namespace");
    let nameless = observe(&nameless).await.unwrap_err();
    assert!(nameless.contains("has no namespace"), "{nameless}");
}
