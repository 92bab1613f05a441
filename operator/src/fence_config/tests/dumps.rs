//! Where messages of crash kernels come from, and what they suffice for.

use super::*;

#[test]
fn the_messages_of_a_crash_kernel_come_from_where_the_configuration_says() {
    let addresses = |said: &str| {
        let text = ONE.replace(
            "power_management=",
            &format!("kdump={said}\n      power_management="),
        );
        let from = Cluster::of(&text).read().nodes["n1"].dumps_from.clone();
        from.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(Cluster::of(ONE).read().nodes["n1"].dumps_from, None);
    assert_eq!(addresses("node").unwrap(), ["192.0.2.7"]);
    assert_eq!(
        addresses("192.0.2.8, 2001:db8::8").unwrap(),
        ["192.0.2.8", "2001:db8::8"]
    );
    assert_eq!(addresses("none").unwrap(), [] as [&str; 0]);
    // Those of one node are none of another's.
    let all =
        "- metadata: { name: fence-config-default }\n  data: { config.properties: \"kdump=192.0.2.8\" }\n";
    assert_eq!(
        Cluster::of(all).faults("fence-config-default"),
        [
            "config.properties: kdump: gives addresses, and is for more than one node; node and none are allowed"
        ]
    );
    let all = Cluster::of(&all.replace("192.0.2.8", "node")).read();
    assert!(
        all.nodes
            .values()
            .all(|facts| facts.dumps_from.as_ref().is_some_and(|all| all.len() == 1))
    );
}

#[test]
fn a_message_of_a_crash_kernel_suffices_where_the_configuration_says_so_alone() {
    let suffices = |said: &str| {
        let text = ONE.replace("power_management=", &format!("{said}\n      power_management="));
        let plan = Cluster::of(&text).plan("fence-config-node-n1");
        plan.sufficient_sets.contains(&[ProofKind::Kdump].into())
    };
    assert!(!suffices("kdump=node") && !suffices("kdump=node\n      kdump_suffices=false"));
    assert!(suffices("kdump=node\n      kdump_suffices=true"));
}
