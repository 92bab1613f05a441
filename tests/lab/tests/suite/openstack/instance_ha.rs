//! Masakari, with which Ringfence is compared.

use std::time::Duration;

use ringfence_lab::{Cloud, MasakariSettings, OpenStack, OpenStackOptions, Services};

use super::parts;

#[test]
#[ignore = "Masakari is for benchmarks, and takes a cloud of its own"]
fn masakari_moves_the_servers_of_a_host_that_is_reported_dead() {
    let options = OpenStackOptions {
        services: Services::WithMasakari,
        ..OpenStackOptions::new(&parts())
    };
    let mut openstack = OpenStack::start(&options).unwrap();
    let cloud = Cloud::new(openstack.description());
    let [mut old, new] = cloud.computes(["ha-a", "ha-b"]).unwrap();
    let server = cloud.boot(&old, &["ha-1"], &[]).unwrap()[0].id.clone();
    let segment = cloud.make_segment("ha", &["ha-a", "ha-b"]).unwrap();

    old.power_off().unwrap();
    let notification = cloud.notify_of_dead_host("ha-a").unwrap();
    let ended = cloud.follow(&notification.id, Duration::from_secs(180)).unwrap();

    assert_eq!(ended.status, "finished");
    assert!(new.runs(&server).unwrap());

    // The engine can be started again with other settings.
    let settings = MasakariSettings::DEFAULT;
    openstack.change_masakari(settings).unwrap();
    let notification = cloud.notify_of_living_host("ha-b").unwrap();
    let ended = cloud.follow(&notification.id, Duration::from_secs(120)).unwrap();
    assert_eq!(ended.status, "finished");
    cloud.delete_segment(&segment).unwrap();
}
