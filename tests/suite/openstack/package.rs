//! The Python package for Nova, tested with Nova.

use std::path::Path;

use ringfence_tests::package_tests;

#[test]
fn the_tests_of_the_package_for_nova_pass_with_nova() {
    assert_eq!(package_tests(Path::new("/usr/bin/python3")), "OK");
}
