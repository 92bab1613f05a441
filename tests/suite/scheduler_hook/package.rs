//! The Python package for Nova, tested without Nova, with the libraries that Keystone depends on.

use std::path::Path;

use ringfence_tests::package_tests;

#[test]
fn the_tests_of_the_package_for_nova_pass_without_nova() {
    let keystone = std::env::var_os("RINGFENCE_TEST_KEYSTONE")
        .expect("RINGFENCE_TEST_KEYSTONE is not set; run the tests with `cargo xtask test`");
    let python = Path::new(&keystone).with_file_name("python");
    // The tests of the filter need Nova's scheduler.
    assert_eq!(package_tests(&python), "OK (skipped=1)");
}
