//! The Python package for Nova, by its own tests.

use std::path::Path;
use std::process::Command;

/// Runs them with this Python, and tells how they ended: `OK`, or `OK (skipped=N)`.
///
/// # Panics
/// Some have failed.
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
