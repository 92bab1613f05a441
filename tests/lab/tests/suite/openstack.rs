//! A shared OpenStack, and computes of one test in it.

mod baremetal;
mod compute;
mod instance_ha;
mod network;
mod nova_api;
mod users;
mod volumes;

use std::path::PathBuf;

use ringfence_lab::Cloud;

/// The cloud of this test run.
fn cloud() -> Cloud {
    let cloud = Cloud::from_environment().unwrap();
    cloud.expect("RINGFENCE_TEST_OPENSTACK is not set; run this through `cargo xtask test`, with OpenStack")
}

/// The parts of an OpenStack, for a test that starts one.
fn parts() -> PathBuf {
    let parts = std::env::var_os("RINGFENCE_TEST_OPENSTACK_PARTS");
    parts
        .expect(
            "RINGFENCE_TEST_OPENSTACK_PARTS is not set; run this through `cargo xtask test`, with OpenStack",
        )
        .into()
}
