//! Machines that Ironic switches.

use super::cloud;

#[test]
fn a_baremetal_node_is_switched_off_and_on() {
    let cloud = cloud();
    let node = cloud.enrol("metal-a").unwrap();
    assert_eq!(node.power_state().unwrap(), "power on");
    assert!(!node.is_in_maintenance().unwrap());

    node.set_powered(false).unwrap();
    assert_eq!(node.power_state().unwrap(), "power off");
    node.set_powered(true).unwrap();
    assert_eq!(node.power_state().unwrap(), "power on");
}
