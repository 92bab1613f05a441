//! Machines of clouds, by the provider id of their node.

use super::*;

#[test]
fn the_proposals_example_for_a_cloud_restarts_the_instance_that_the_provider_id_names() {
    let cluster = Cluster::of(EXAMPLES).with_secret("fence-cloud-aws", &["access_key", "secret_key"]);
    let plan = cluster.plan("fence-config-n1");
    let method = own("fence-cloud-aws_restart-instance");
    assert_eq!(
        told(&plan.stages),
        [
            vec![(FencingKind::PowerOff, method.clone())],
            vec![(FencingKind::PowerOn, Vec::new())]
        ]
    );
    assert!(plan.methods.is_empty());
    let Ok(Declared::Cloud { method: cloud, .. }) = cluster.verdict("fence-cloud-aws").found else {
        panic!("the cloud has no method");
    };
    assert_eq!(cloud.name, method[0][0]);
    assert_eq!(cloud.parameters["agent"], "fence_aws");
    let secrets: Vec<String> = cloud.secrets.values().map(ToString::to_string).collect();
    assert_eq!(
        secrets,
        [
            "secret:lab/fence-cloud-aws/access_key",
            "secret:lab/fence-cloud-aws/secret_key"
        ]
    );
    let (name, machine) = cluster.read().nodes["n1"].machine.clone().unwrap();
    assert_eq!(name, cloud.name);
    assert_eq!(machine["plug"], "i-0123456789abcdef0");
    assert_eq!(machine["region"], "eu-central-1");
}

#[test]
fn with_no_configuration_at_all_the_nodes_cloud_restarts_them_once_its_credentials_are_there() {
    assert!(Cluster::of("[]").read().verdicts.is_empty());
    let cluster = Cluster::of("[]").with_secret("fence-cloud-aws", &["access_key", "secret_key"]);
    let plan = cluster.plan("fence-config-default");
    assert_eq!(plan.scope, Scope::Default);
    assert_eq!(
        told(&plan.stages)[0],
        [(FencingKind::PowerOff, own("fence-cloud-aws_restart-instance"))]
    );
    assert_eq!(cluster.secrets_named(), set(&["fence-cloud-aws"]));
}

#[test]
fn each_cloud_restarts_the_machine_that_the_provider_id_names() {
    const UUID: &str = "4c4c4544-0050-4a10-8033-b4c04f4d3153";
    const AZURE: &str =
        "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n1";
    let clouds = [
        (AZURE.to_owned(), "azure", "fence_azure_arm", "n1"),
        ("gce://p/europe-west3-a/n1".to_owned(), "gce", "fence_gce", "n1"),
        (
            format!("openstack:///{UUID}"),
            "openstack",
            "fence_openstack",
            UUID,
        ),
        (format!("vsphere://{UUID}"), "vsphere", "fence_vmware_soap", UUID),
    ];
    for (id, word, agent, plug) in clouds {
        let secret = format!("fence-cloud-{word}");
        let cluster = Cluster::of("[]")
            .with_secret(&secret, &["password"])
            .with_node(node("n1", None, &id));
        let name = format!("{secret}_restart-instance");
        let plan = cluster.plan("fence-config-default");
        assert_eq!(
            told(&plan.stages)[0],
            [(FencingKind::PowerOff, own(&name))],
            "{id}"
        );
        let Ok(Declared::Cloud { method, .. }) = cluster.verdict(&secret).found else {
            panic!("{word} has no method");
        };
        assert_eq!(method.driver, "fence-agent");
        assert_eq!(method.parameters["agent"], agent);
        let of_secret = format!("secret:lab/{secret}/password");
        assert_eq!(method.secrets["password"].to_string(), of_secret);
        let (by, machine) = cluster.read().nodes["n1"].machine.clone().unwrap();
        assert_eq!((by, machine["plug"].as_str()), (own(&name)[0][0].clone(), plug));
    }
}

#[test]
fn a_bare_metal_host_is_held_off_by_its_operator_without_a_secret() {
    let text = "[{ metadata: { name: fence-config-node-n1 }, data: { config.properties: 'power_management=restart-instance' } }]";
    let cluster = Cluster::of(text).with_node(node("n1", None, "metal3://hosts/n1-host/n1-machine"));
    assert_eq!(cluster.plan("fence-config-node-n1").stages.len(), 2);
    let (name, machine) = cluster.read().nodes["n1"].machine.clone().unwrap();
    assert!(name.ends_with("restart-instance"), "{name}");
    assert_eq!(
        (machine["namespace"].as_str(), machine["host"].as_str()),
        ("hosts", "n1-host")
    );
}

#[test]
fn a_node_of_no_known_cloud_and_one_of_another_cloud_are_told_why_they_cannot_be_fenced() {
    let cluster = Cluster::of("[]")
        .with_secret("fence-cloud-aws", &["access_key", "secret_key"])
        .with_node(node("n3", None, "kind://docker/kind/n3"))
        .with_node(node("n4", None, ""))
        .with_node(node("n5", None, "gce://p/europe-west3-a/n5"));
    for (name, why) in [
        (
            "n3",
            "provider id \"kind://docker/kind/n3\" is of an unknown cloud; allowed: aws:///ZONE/i-ID",
        ),
        ("n4", "the node has no provider id (spec.providerID)"),
        (
            "n5",
            "there is no usable Secret fence-cloud-gce with the credentials of gce",
        ),
    ] {
        let faults = cluster.faults(name);
        assert!(faults[0].contains(why), "{faults:?}");
    }
    let of_both = cluster.with_secret("fence-cloud-gce", &["serviceaccount"]);
    let faults = of_both.faults("n5");
    assert!(
        faults[0].contains("it is of gce, and fence-config-default restarts instances of aws"),
        "{faults:?}"
    );
    assert_eq!(of_both.plan("fence-config-default").stages.len(), 2);
}

#[test]
fn a_key_of_a_clouds_secret_that_each_node_gives_is_refused() {
    let cluster = Cluster::of("[]").with_secret("fence-cloud-aws", &["access_key", "secret_key", "plug"]);
    assert_eq!(
        cluster.faults("fence-cloud-aws"),
        ["plug: is given by each node's provider id; remove it from the Secret"]
    );
}
