//! Methods compared with the metadata of agents.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringfence_bus::ValidateRequest;
use ringfence_core::{ProviderId, Resource, SecretReference};
use ringfence_workers::Driver;

use crate::drivers;

fn request(resource: Resource, parameters: &[(&str, &str)], secrets: &[&str]) -> ValidateRequest {
    let secret = |name: &&str| ((*name).to_owned(), SecretReference::Env("PASSWORD".to_owned()));
    ValidateRequest {
        driver: "fence-agent".to_owned(),
        resource,
        parameters: parameters
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
        secrets: secrets.iter().map(secret).collect::<BTreeMap<_, _>>(),
    }
}

async fn problems(resource: Resource, parameters: &[(&str, &str)], secrets: &[&str]) -> Vec<String> {
    let driver = drivers().get("fence-agent").unwrap();
    let problems = driver.validate(&request(resource, parameters, secrets)).await;
    problems.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_valid_method_for_a_real_agent_has_no_problem() {
    let ipmilan = [
        ("agent", "fence_ipmilan"),
        ("ip", "10.0.0.1"),
        ("username", "admin"),
        ("lanplus", "1"),
    ];
    assert_eq!(
        problems(Resource::Power, &ipmilan, &["password"]).await,
        Vec::<String>::new()
    );
    let dummy = [("agent", "fence_dummy"), ("status_file", "/run/${host.name}")];
    assert_eq!(
        problems(Resource::Storage, &dummy, &[]).await,
        Vec::<String>::new()
    );
    let switch = [
        ("agent", "fence_apc_snmp"),
        ("ip", "pdu.example"),
        ("plug", "${host.name}"),
    ];
    assert_eq!(
        problems(Resource::Power, &switch, &["community"]).await,
        Vec::<String>::new()
    );
}

/// The parameters of `docs/fencing-clouds.md`, together with those that a node's provider id gives.
async fn expect_valid(id: &str, given: &[(&str, &str)], secrets: &[&str]) {
    let id: ProviderId = id.parse().unwrap();
    let of_machine = id.parameters();
    let mut parameters = vec![("agent", id.agent().unwrap())];
    parameters.extend(
        of_machine
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    parameters.extend(given);
    let mut found = problems(Resource::Power, &parameters, secrets).await;
    // On a busy machine an agent with large libraries can take longer than a worker waits for its metadata.
    for _ in 0..5 {
        if !found.iter().any(|problem| problem.contains("was still running")) {
            break;
        }
        found = problems(Resource::Power, &parameters, secrets).await;
    }
    assert_eq!(found, Vec::<String>::new(), "{id:?}");
}

#[tokio::test]
async fn a_method_for_the_machine_of_every_cloud_is_valid_for_its_agent() {
    let uuid = "4f2b4b66-0c5f-4a4d-9a43-3fd3a3b7a0d1";
    let azure = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n";
    let account = [("serviceaccount", "/etc/ringfence/gce.json")];
    let vcenter = [("ip", "vcenter.example"), ("username", "fence"), ("ssl", "1")];
    let key = [("access_key", "AKIA")];
    expect_valid("aws:///eu-central-1a/i-0123", &key, &["secret_key"]).await;
    expect_valid("gce://p/europe-west3-a/n", &account, &[]).await;
    expect_valid(azure, &[("username", "app"), ("tenantId", "t")], &["password"]).await;
    expect_valid(&format!("openstack:///{uuid}"), &[("cloud", "east")], &[]).await;
    expect_valid(&format!("vsphere://{uuid}"), &vcenter, &["password"]).await;
    let rest = [("agent", "fence_vmware_rest"), ("plug", "node-1"), ("ssl", "1")];
    let parameters = [&rest[..], &vcenter[..2]].concat();
    assert_eq!(
        problems(Resource::Power, &parameters, &["password"]).await,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_machine_of_azure_is_never_off_by_its_network_alone() {
    let parameters = [
        ("agent", "fence_azure_arm"),
        ("plug", "n"),
        ("network_fencing", "1"),
    ];
    let found = problems(Resource::Power, &parameters, &[]).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("once its network is closed"), "{found:?}");
}

#[tokio::test]
async fn a_wrong_method_for_a_real_agent_is_refused_with_its_problems() {
    let found = problems(
        Resource::Power,
        &[
            ("agent", "fence_ipmilan"),
            ("ipp", "10.0.0.1"),
            ("auth", "sha9"),
            ("power_timeout", "soon"),
            ("lanplus", "perhaps"),
            ("method", "cycle"),
        ],
        &["passwort"],
    )
    .await;
    assert_eq!(
        found,
        [
            "parameters.ipp: is unknown to fence_ipmilan; did you mean ip?",
            "secrets.passwort: is unknown to fence_ipmilan; did you mean password?",
            "parameters.auth: is \"sha9\"; allowed: md5, password, none",
            "parameters.lanplus: is \"perhaps\"; true, false, yes, no, on, off, 1 or 0 is allowed",
            "parameters.method: is \"cycle\", which never verifies that power went off; onoff is allowed",
            "parameters.power_timeout: is \"soon\"; a whole number is allowed",
        ]
    );
}

#[tokio::test]
async fn an_agent_that_is_not_installed_is_refused_with_the_nearest_installed_one() {
    assert_eq!(
        problems(Resource::Power, &[("agent", "fence_impilan")], &[]).await,
        ["parameters.agent: fence_impilan is not installed on the worker; did you mean fence_ipmilan?"]
    );
    assert_eq!(
        problems(Resource::Power, &[("agent", "/bin/sh")], &[]).await,
        ["parameters.agent: \"/bin/sh\" is not the name of a fence agent"]
    );
}

#[tokio::test]
async fn an_agent_that_cannot_prove_a_task_is_refused() {
    for (agent, resource, words) in [
        ("fence_scsi", Resource::Storage, "must run on the host itself"),
        ("fence_mpath", Resource::Storage, "must run on the host itself"),
        ("fence_brocade", Resource::Power, "does not act on its power"),
        ("fence_kdump", Resource::Power, "crash kernel"),
    ] {
        let found = problems(resource, &[("agent", agent)], &[]).await.join("; ");
        assert!(found.contains(words), "{agent}: {found}");
    }
    let found = problems(
        Resource::Network,
        &[("agent", "fence_brocade"), ("ip", "a"), ("username", "b")],
        &[],
    )
    .await;
    assert_eq!(found, Vec::<String>::new());
}

/// Every installed agent is understood, or refused with a reason; with the defaults of all its parameters a method has no problem with
/// a value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_installed_agent_is_understood_or_refused_with_a_reason() {
    let driver = drivers().get("fence-agent").unwrap();
    let mut agents: Vec<String> = std::fs::read_dir("/usr/sbin")
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("fence_"))
        .collect();
    agents.sort();
    assert!(agents.len() >= 80, "only {} agents are installed", agents.len());
    let mut silent = Vec::new();
    for four in agents.chunks(4) {
        let asked: Vec<_> = four
            .iter()
            .map(|agent| tokio::spawn(ask(Arc::clone(&driver), agent.clone())))
            .collect();
        for (agent, asked) in four.iter().zip(asked) {
            let found = asked.await.unwrap();
            assert!(!found.iter().any(|p| p.contains("unknown")), "{agent}: {found:?}");
            if found.iter().any(|p| p.contains("tells nothing")) {
                silent.push(agent.as_str());
            }
        }
    }
    assert_eq!(silent, ["fence_ack_manual"]);
}

async fn ask(driver: Arc<dyn Driver>, agent: String) -> Vec<String> {
    let problems = driver
        .validate(&request(Resource::Power, &[("agent", &agent)], &[]))
        .await;
    problems.iter().map(ToString::to_string).collect()
}
