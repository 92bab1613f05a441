//! What the doctor says of a cluster: the way there, its release, its clock, rights, and other programs in it.

use chrono::TimeDelta;
use ringfence_backends::kubernetes::ClusterUses;
use serde_json::{Value, json};

use super::api_server::{ApiServer, noon, release};

#[tokio::test]
async fn a_kubeconfig_that_others_may_read_is_told_of() {
    let server = ApiServer::start(32).await;
    for (mode, shown) in [(0o644, "0644"), (0o640, "0640"), (0o604, "0604")] {
        server.write_kubeconfig(mode);
        let (told, remedy) = server.examined().await.warning("has mode");
        let path = server.kubeconfig().display().to_string();
        assert_eq!(told, format!("{path} has mode {shown}, and it holds credentials"));
        assert!(remedy.starts_with("chmod 600"), "{remedy}");
    }
    for mode in [0o600, 0o400] {
        server.write_kubeconfig(mode);
        assert!(
            server.examined().await.warnings("has mode").is_empty(),
            "{mode:o}"
        );
    }
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_or_has_no_such_context_is_told_with_its_name() {
    let server = ApiServer::start(32).await;
    std::fs::write(server.kubeconfig(), "{}").unwrap();
    let (told, remedy) = server.examined().await.failure("kubeconfig: ");
    assert!(told.starts_with("cluster east: /"), "{told}");
    assert!(remedy.contains("kubernetes.clusters"), "{remedy}");
    std::fs::remove_file(server.kubeconfig()).unwrap();
    let found = server.examined().await;
    assert_eq!(found.0.len(), 1, "{found:?}");
    let (told, _) = found.failure("kubeconfig: ");
    assert!(told.contains("No such file"), "{told}");
}

#[tokio::test]
async fn what_a_release_is_used_for_is_told() {
    for (minor, told) in [
        (20, "the pods and attachments of a FENCED node are deleted"),
        (25, "the pods and attachments of a FENCED node are deleted"),
        (
            26,
            "a FENCED node gets the out-of-service taint, and its pods are deleted",
        ),
        (
            36,
            "a FENCED node gets the out-of-service taint, and its pods are deleted",
        ),
    ] {
        let found = ApiServer::start(minor).await.examined().await;
        let good = found.good(": Kubernetes v1.");
        assert!(
            good.starts_with(&format!("east: Kubernetes v1.{minor}.2")),
            "{good}"
        );
        assert!(good.ends_with(told), "{good}");
    }
    // As distributions write it.
    let server = ApiServer::start(0).await;
    server.answers().version = release("1", "27+");
    server.examined().await.good("gets the out-of-service taint");
}

#[tokio::test]
async fn a_release_that_is_not_known_is_a_failure_that_is_told_once() {
    let server = ApiServer::start(32).await;
    for (version, told) in [
        (
            release("9", "1"),
            "east: Kubernetes v9.1.2 is no release that Ringfence knows",
        ),
        (
            release("one", "two"),
            "east: Kubernetes vone.two.2 is no release that Ringfence knows",
        ),
        (
            release("1", ""),
            "east: Kubernetes v1..2 is no release that Ringfence knows",
        ),
        (
            release("1", "19"),
            "east: Kubernetes v1.19.2 is older than any release that Ringfence is run with",
        ),
    ] {
        server.answers().version = version;
        let found = server.examined().await;
        let (seen, remedy) = found.failure("");
        assert_eq!(seen, told);
        assert!(remedy.contains("1.20"), "{remedy}");
    }
    for nothing in [
        json!({}),
        release("", "").as_object_mut().map_or(Value::Null, |all| {
            all.insert("gitVersion".to_owned(), json!(""));
            json!(all)
        }),
    ] {
        server.answers().version = nothing;
        let (told, remedy) = server.examined().await.failure("");
        assert_eq!(told, "east: the API server does not say which release it is");
        assert!(remedy.contains("API server of Kubernetes"), "{remedy}");
    }
}

#[tokio::test]
async fn a_clock_that_is_ahead_or_behind_is_told_of() {
    let server = ApiServer::start(32).await;
    for (seconds, told) in [
        (90, "east: the API server's clock is 90 s ahead of this machine's"),
        (
            -3_600,
            "east: the API server's clock is 3600 s behind this machine's",
        ),
    ] {
        server.answers().date = Some(noon() + TimeDelta::seconds(seconds));
        let (seen, remedy) = server.examined().await.warning("clock");
        assert_eq!(seen, told);
        assert!(remedy.contains("time servers"), "{remedy}");
    }
    for seconds in [-10, 0, 10] {
        server.answers().date = Some(noon() + TimeDelta::seconds(seconds));
        assert!(server.examined().await.warnings("clock").is_empty(), "{seconds}");
    }
    server.answers().date = None;
    assert!(server.examined().await.warnings("clock").is_empty());
}

#[tokio::test]
async fn other_programs_that_act_on_silent_nodes_are_told_each_with_its_name() {
    let server = ApiServer::start(32).await;
    let act = "may act on a silent node by itself";
    assert!(server.examined().await.warnings(act).is_empty());
    for (group, program) in [
        ("remediation.medik8s.io", "the Node Health Check operator"),
        ("self-node-remediation.medik8s.io", "Self Node Remediation"),
        ("fence-agents-remediation.medik8s.io", "Fence Agents Remediation"),
        ("cluster.x-k8s.io", "Cluster API"),
        ("machine.openshift.io", "OpenShift's machine API"),
    ] {
        server.answers().groups = vec![group];
        let (told, remedy) = server.examined().await.warning(act);
        assert_eq!(told, format!("east: {program} is installed, and {act}"));
        assert_eq!(remedy, "let one program alone act on a silent node");
    }
    server.answers().groups = vec![
        "machine.openshift.io",
        "remediation.medik8s.io",
        "other.cluster.x-k8s.io",
    ];
    assert_eq!(server.examined().await.warnings(act).len(), 2);
}

#[tokio::test]
async fn rights_that_are_missing_are_told_with_what_fails_without_them() {
    let server = ApiServer::start(32).await;
    server
        .examined()
        .await
        .good("all rights that Ringfence needs are granted");
    server.answers().denied = vec!["delete pods", "create leases", "patch nodefences"];
    let (told, remedy) = server.examined().await.failure("does not allow: ");
    assert!(
        told.contains("delete pods (to remove the pods of a FENCED node)"),
        "{told}"
    );
    assert!(
        told.contains("create leases.coordination.k8s.io -n ringfence ("),
        "{told}"
    );
    assert!(!told.contains("nodefences"), "nothing serves them: {told}");
    assert!(remedy.starts_with("grant it"), "{remedy}");
    server.answers().denied = vec!["create pods"];
    let found = server.examined().await;
    found.good("all rights that Ringfence needs are granted");
    found.good(
        "create pods/eviction is not granted, which segments with evacuation.disruption_budgets alone need",
    );
    server.answers().denied = vec!["patch nodefences"];
    let operator = ClusterUses {
        has_operator: true,
        has_records: false,
    };
    let (told, _) = server.examined_as(operator).await.failure("does not allow: ");
    assert!(told.contains("patch nodefences.ringfence.io ("), "{told}");
}

#[tokio::test]
async fn an_api_server_that_is_not_there_is_told_with_what_to_do() {
    let mut server = ApiServer::start(32).await;
    server.stop().await;
    let found = server.examined().await;
    assert_eq!(found.0.len(), 1, "{found:?}");
    let (told, remedy) = found.failure("the API server of cluster east does not answer: ");
    assert!(told.contains("refused"), "{told}");
    assert!(
        remedy.contains("start the API server") && remedy.contains("kubeconfig"),
        "{remedy}"
    );
}

#[tokio::test]
async fn an_answer_that_is_no_api_servers_is_told_in_one_line() {
    let server = ApiServer::start(32).await;
    let page = format!("<html>\n<body>\n{}</body></html>", "<p>Log in</p>\n".repeat(500));
    for (code, told) in [
        (
            200,
            "the API server of cluster east has answered something that cannot be read: ",
        ),
        (404, "the API server of cluster east: "),
        (502, "the API server of cluster east does not answer: "),
    ] {
        server.answers().instead = Some(("", code, "text/html", page.clone()));
        let (seen, remedy) = server.examined().await.failure(told);
        assert!(seen.len() < 500 && !seen.contains('\n'), "{seen}");
        assert!(remedy.contains("kubeconfig"), "{remedy}");
    }
    server.answers().instead = Some(("", 200, "application/json", String::new()));
    server.examined().await.failure("cannot be read: ");
}

#[tokio::test]
async fn credentials_that_are_refused_are_told_in_the_words_of_the_api_server() {
    let server = ApiServer::start(32).await;
    for (code, reason, message) in [
        (401, "Unauthorized", "Unauthorized"),
        (
            403,
            "Forbidden",
            "forbidden: User \"u\" cannot get path \"/version\"",
        ),
    ] {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code,
        });
        server.answers().instead = Some(("", code, "application/json", status.to_string()));
        let found = server.examined().await;
        assert_eq!(found.0.len(), 1, "{found:?}");
        let (told, remedy) = found.failure("the API server of cluster east refuses the credentials: ");
        assert!(told.ends_with(message), "{told}");
        assert!(remedy.contains("token or the certificate"), "{remedy}");
    }
}

#[tokio::test]
async fn a_cluster_that_detaches_volumes_by_force_is_told_of() {
    let forced = "when it was silent for 6 minutes, whether it is FENCED or not";
    for minor in [20, 32] {
        let server = ApiServer::start(minor).await;
        let (told, remedy) = server.examined().await.warning(forced);
        assert!(
            told.starts_with("east: nothing keeps the cluster from detaching"),
            "{told}"
        );
        assert!(remedy.contains("install the gates"), "{remedy}");
    }
}
