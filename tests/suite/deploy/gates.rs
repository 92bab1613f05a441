//! The gates of a cluster, as the program prints them.

use ringfence_tests::Machine;

use super::accepted;

#[tokio::test]
async fn the_gates_and_the_webhooks_of_a_cluster_are_printed_whole() {
    let machine = Machine::new()
        .set("RINGFENCE_KUBERNETES_CLUSTERS", "east")
        .set("RINGFENCE_KUBERNETES_NAMESPACE", "fencing");
    let gates = machine
        .run(&["kubernetes", "gates", "east", "--account", "fencing-user"])
        .await;
    accepted(&gates);
    assert_eq!(
        gates
            .out
            .matches("kind: ValidatingAdmissionPolicyBinding")
            .count(),
        8
    );
    assert!(
        gates.out.contains("request.userInfo.username != 'fencing-user'"),
        "{}",
        gates.out
    );
    assert!(gates.out.contains("namespace: fencing"), "{}", gates.out);
    let authority = machine.file("ca.pem");
    std::fs::write(&authority, "an authority").unwrap();
    let authority = authority.display().to_string();
    let words = ["kubernetes", "webhooks", "east", "--ca-file", &authority, "--url"];
    let webhooks = machine
        .run(&[&words[..], &["https://hook.example:8791"]].concat())
        .await;
    accepted(&webhooks);
    let url = "https://hook.example:8791/kubernetes/admission/east";
    assert_eq!(webhooks.out.matches(url).count(), 5, "{}", webhooks.out);
    let plain = machine
        .run(&[&words[..], &["http://hook.example:8791"]].concat())
        .await;
    assert!(plain.err.contains("https://HOST:PORT is allowed"), "{plain:?}");
    let unknown = machine
        .run(&["kubernetes", "gates", "west", "--account", "a"])
        .await;
    assert!(unknown.err.contains("kubernetes.clusters (east)"), "{unknown:?}");
}
