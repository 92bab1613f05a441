//! Hosts that die, hang and come back.

use ringfence_lab::{Api, Cloud, Compute};
use serde_json::json;

use super::cloud;

fn whats(compute: &Compute) -> Vec<String> {
    let history = compute.history().unwrap();
    history.into_iter().map(|change| change.what).collect()
}

fn uptime(cloud: &Cloud, host: &str) -> String {
    let hypervisor = cloud.hypervisor(host).unwrap().unwrap();
    hypervisor["uptime"].as_str().unwrap().to_owned()
}

#[test]
fn a_killed_compute_goes_down_and_its_servers_can_be_evacuated() {
    let cloud = cloud();
    let [mut old, new] = cloud.computes(["evac-a", "evac-b"]).unwrap();
    let servers = cloud
        .boot(&old, &["evac-1", "evac-2"], &[("tier", "web")])
        .unwrap();
    assert!(servers.iter().all(|server| server.metadata["tier"] == "web"));

    old.kill();
    assert!(!cloud.wait_state("evac-a", false).unwrap().forced_down);
    cloud.force_down("evac-a", "it is dead").unwrap();
    for server in &servers {
        cloud.evacuate(&server.id, Some(&new)).unwrap();
    }
    cloud.wait_evacuations("evac-a", 2, "done").unwrap();

    for server in &servers {
        let moved = cloud.wait_active(&server.id).unwrap();
        assert_eq!(moved.host.as_deref(), Some("evac-b"));
        // The old host still has power: this is a split brain, and the guests' records show it.
        assert!(old.runs(&server.id).unwrap() && new.runs(&server.id).unwrap());
    }

    old.start_again().unwrap();
    old.wait_heard().unwrap();
    cloud.wait_evacuations("evac-a", 2, "completed").unwrap();
    assert!(old.domains().unwrap().is_empty());
    assert_eq!(whats(&old), ["spawn", "spawn", "destroy", "destroy"]);
    cloud.unforce("evac-a").unwrap();
    old.wait_ready().unwrap();
    cloud.enable("evac-a").unwrap();
    let service = cloud.compute_service("evac-a").unwrap();
    assert!(service.is_up() && service.status == "enabled");
    assert!(
        !cloud
            .traits("evac-a")
            .unwrap()
            .iter()
            .any(|name| name == "COMPUTE_STATUS_DISABLED")
    );

    cloud.remove(old).unwrap();
    cloud.remove(new).unwrap();
    for host in ["evac-a", "evac-b"] {
        assert!(cloud.servers_on(host).unwrap().is_empty());
        assert!(cloud.provider(host).unwrap().is_none());
        assert!(
            cloud
                .compute_services()
                .unwrap()
                .iter()
                .all(|service| service.host != host)
        );
    }
}

#[test]
fn a_host_that_was_powered_off_runs_no_guest_and_returns_with_a_new_boot() {
    let cloud = cloud();
    let [mut host] = cloud.computes(["power-a"]).unwrap();
    let servers = cloud.boot(&host, &["power-1"], &[]).unwrap();
    let id = &servers[0].id;
    assert!(uptime(&cloud, "power-a").contains(" up 3 days, "));

    host.power_off().unwrap();
    assert!(!host.is_running() && !host.runs(id).unwrap());
    assert_eq!(
        host.domains().unwrap()[id].name,
        "instance-".to_owned() + &instance_number(&host, id)
    );

    host.power_on().unwrap();
    host.wait_ready().unwrap();
    assert!(!host.runs(id).unwrap());
    assert_eq!(whats(&host)[..2], ["spawn", "power_lost"]);
    assert!(!uptime(&cloud, "power-a").contains(" days, "));
}

fn instance_number(host: &Compute, id: &str) -> String {
    let name = host.domains().unwrap()[id].name.clone();
    name.trim_start_matches("instance-").to_owned()
}

#[test]
fn guests_survive_the_death_of_nova_compute_and_a_hang_of_the_host() {
    let cloud = cloud();
    let [mut host] = cloud.computes(["alive-a"]).unwrap();
    let id = cloud.boot(&host, &["alive-1"], &[]).unwrap()[0].id.clone();

    host.kill();
    assert!(!host.is_running() && host.runs(&id).unwrap());
    host.start_again().unwrap();
    host.wait_ready().unwrap();
    assert!(uptime(&cloud, "alive-a").contains(" up 3 days, "));

    host.pause().unwrap();
    cloud.wait_state("alive-a", false).unwrap();
    assert!(host.is_running() && host.runs(&id).unwrap());
    host.resume().unwrap();
    cloud.wait_state("alive-a", true).unwrap();
    assert_eq!(whats(&host), ["spawn"]);

    host.stop();
    assert!(host.runs(&id).unwrap());
    host.start_again().unwrap();
    host.wait_ready().unwrap();
    cloud.act(&id, json!({"os-stop": null})).unwrap();
    cloud
        .wait_server(&id, "off", |server| server.status == "SHUTOFF")
        .unwrap();
    assert!(!host.runs(&id).unwrap());
    assert_eq!(whats(&host), ["spawn", "power_off"]);
}

#[test]
fn a_host_that_a_test_leaves_behind_gets_no_servers() {
    let cloud = cloud();
    let [host] = cloud.computes(["forgotten-a"]).unwrap();
    cloud.boot(&host, &["forgotten-1"], &[]).unwrap();

    drop(host);

    assert!(
        cloud
            .compute_services()
            .unwrap()
            .iter()
            .all(|service| service.host != "forgotten-a")
    );
    let servers = cloud
        .get(Api::Compute, "/servers?all_tenants=1&name=forgotten-1")
        .unwrap();
    assert_eq!(servers["servers"], json!([]));
}
