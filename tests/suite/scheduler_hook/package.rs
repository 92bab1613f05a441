//! The Python package for Nova, without Nova: with the libraries that Keystone brings along.

use std::path::Path;

use ringfence_tests::package_tests;

#[test]
fn the_package_for_nova_does_what_it_promises() {
    let keystone = std::env::var_os("RINGFENCE_TEST_KEYSTONE")
        .expect("RINGFENCE_TEST_KEYSTONE is not set; run the tests with `cargo xtask test`");
    let python = Path::new(&keystone).with_file_name("python");
    // Those of the filter need Nova's scheduler.
    assert_eq!(package_tests(&python), "OK (skipped=1)");
}
