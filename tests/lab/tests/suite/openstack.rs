//! A shared OpenStack, and what a test does with computes of its own there.

mod baremetal;
mod compute;
mod instance_ha;
mod network;
mod nova_api;
mod scheduler;
mod volumes;

use std::path::PathBuf;

use ringfence_lab::Cloud;

/// The cloud of this run.
fn cloud() -> Cloud {
    Cloud::from_environment().unwrap().unwrap_or_else(|| {
        panic!(
            "RINGFENCE_TEST_OPENSTACK is not set; run this through `cargo xtask test` or `cargo xtask lab`, without \
             `--without openstack`"
        )
    })
}

/// What a cloud of a test's own is made of.
fn parts() -> PathBuf {
    std::env::var_os("RINGFENCE_TEST_OPENSTACK_PARTS")
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            panic!("RINGFENCE_TEST_OPENSTACK_PARTS is not set; run this through `cargo xtask test`")
        })
}
