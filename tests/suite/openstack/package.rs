//! The Python package for Nova, with Nova.

use std::path::Path;

use ringfence_tests::package_tests;

#[test]
fn the_package_for_nova_does_what_it_promises_with_nova() {
    assert_eq!(package_tests(Path::new("/usr/bin/python3")), "OK");
}
