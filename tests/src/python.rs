//! Runs the tests of the Python package for Nova.

use std::path::Path;
use std::process::Command;

/// Runs the package's tests with this Python, and returns their last line: `OK`, or `OK (skipped=N)`.
///
/// # Panics
/// If a test failed.
pub fn package_tests(python: &Path) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scheduler-hook/nova");
    let done = Command::new(python)
        .args(["-m", "unittest", "discover", "-s", "tests", "-t", "."])
        .current_dir(folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("PYTHONPATH")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    let ran = said.lines().find(|line| line.starts_with("Ran "));
    assert!(ran.is_some_and(|line| !line.starts_with("Ran 0 ")), "{said}");
    said.lines().last().unwrap_or_default().to_owned()
}
