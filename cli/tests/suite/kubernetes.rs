//! What is installed in a cluster.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::rig::Machine;

#[test]
fn what_is_installed_in_a_cluster_is_printed_as_documents_of_yaml() {
    let run = Machine::new().run(&["kubernetes", "crds"]);
    assert_eq!(run.code, 0, "{run:?}");
    let documents = run.out.split("---\n");
    let documents: Vec<Value> = documents
        .map(|one| serde_saphyr::from_str(one).unwrap())
        .collect();
    let names: BTreeSet<&str> = documents
        .iter()
        .map(|one| one["metadata"]["name"].as_str().unwrap())
        .collect();
    let wanted = [
        "nodefences.ringfence.io",
        "ringfence-configuration",
        "ringfence-confirmer",
        "ringfence-operator",
        "ringfence-remediation",
        "ringfenceremediations.ringfence.io",
        "ringfenceremediationtemplates.ringfence.io",
    ];
    assert_eq!(names, BTreeSet::from(wanted));
    let label = &documents
        .iter()
        .find(|one| one["metadata"]["name"] == "ringfence-remediation")
        .unwrap()["metadata"]["labels"];
    for aggregate in [
        "rbac.ext-remediation/aggregate-to-ext-remediation",
        "cluster.x-k8s.io/aggregate-to-manager",
    ] {
        assert_eq!(label[aggregate], "true", "{label}");
    }
}

#[test]
fn a_cluster_whose_objects_are_served_has_to_be_a_known_one() {
    let machine = Machine::new();
    let file = machine.home().join("r.toml");
    let settings = "[kubernetes]\nclusters = [\"prod\"]\nkubeconfig = \"/nowhere\"\noperator = [\"test\"]\n";
    std::fs::write(&file, settings).unwrap();
    let data_dir = machine.home().join("data");
    let run = machine.run(&[
        "standalone",
        "--config",
        file.to_str().unwrap(),
        "--data-dir",
        data_dir.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(
        run.err.contains("kubernetes.operator has \"test\"") && run.err.contains("(prod)"),
        "{run:?}"
    );
}

#[test]
fn records_are_kept_by_standalone_alone_and_in_a_known_cluster() {
    let machine = Machine::new()
        .set("RINGFENCE_KUBERNETES_CLUSTERS", "prod")
        .set("RINGFENCE_KUBERNETES_RECORDS", "edge");
    let refused = machine.run(&["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    let told = "kubernetes.records is \"edge\"; one of kubernetes.clusters (prod) is allowed";
    assert!(refused.err.contains(told), "{refused:?}");
    for service in ["engine", "api"] {
        let refused = machine.run(&[service]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("or run ringfence standalone"), "{refused:?}");
    }
}
