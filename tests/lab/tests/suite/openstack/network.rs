//! Ports of servers.

use ringfence_lab::NewServer;

use super::cloud;

#[test]
fn a_port_is_bound_to_its_servers_host_and_can_be_disabled() {
    let cloud = cloud();
    let [host] = cloud.computes(["port-a"]).unwrap();
    let network = cloud.make_network("port-net").unwrap();
    let port = cloud.make_port(&network).unwrap();
    assert_eq!(port.host, "");
    let server = NewServer {
        host: Some(&host),
        ports: &[&port],
        ..NewServer::new("port-1")
    };
    let id = cloud.boot_all(&[server]).unwrap()[0].id.clone();

    let bound = cloud.ports_on("port-a").unwrap();
    assert_eq!(bound.len(), 1);
    assert_eq!(
        (bound[0].device_id.as_str(), bound[0].vif_type.as_str()),
        (id.as_str(), "ovs")
    );
    assert!(bound[0].admin_state_up);
    cloud.set_port_up(&port.id, false).unwrap();
    assert!(!cloud.port(&port.id).unwrap().admin_state_up);
    assert_eq!(cloud.network_agents("port-a").unwrap()[0]["alive"], true);

    cloud.remove(host).unwrap();
    cloud.delete_network(&network).unwrap();
}
