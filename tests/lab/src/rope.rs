//! Ends the processes of a folder when the test process dies, also if it is killed and drops no value.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::{During, LabError};

const SCRIPT: &str = include_str!("rope.sh");

/// Ties a folder to the test process: if the process dies, the programs that run in the folder end, and the folder is removed. Dropping
/// the value unties the folder.
///
/// A [`Leash`](crate::leash::Leash) ends only its own program, and does nothing for a folder whose program is off.
#[derive(Debug)]
pub struct Rope {
    shell: Child,
}

impl Rope {
    /// Ties this folder.
    ///
    /// # Errors
    /// If the folder does not exist, or no shell can be started.
    pub fn of(home: &Path) -> Result<Self, LabError> {
        let tying = || format!("tying {}", home.display());
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "rope.sh"])
            .arg(home.canonicalize().during(tying)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Its own process group, so that a signal to the group of the test process does not reach the shell.
            .process_group(0)
            .spawn()
            .during(tying)?;
        Ok(Self { shell })
    }
}

impl Drop for Rope {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // Fails only if the shell has ended already.
            let _ = pipe.write_all(b"over\n");
        }
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping_in(home: &Path) -> Child {
        Command::new("sleep")
            .arg("600")
            .current_dir(home)
            .spawn()
            .unwrap()
    }

    #[test]
    fn programs_in_the_folder_end_with_the_test_process_and_the_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let mut rope = Rope::of(&home).unwrap();
        let (mut inside, mut outside) = (sleeping_in(&home), sleeping_in(folder.path()));

        drop(rope.shell.stdin.take());
        rope.shell.wait().unwrap();

        assert!(!inside.wait().unwrap().success());
        assert!(!home.exists());
        assert!(outside.try_wait().unwrap().is_none());
        outside.kill().unwrap();
        outside.wait().unwrap();
    }

    #[test]
    fn an_untied_folder_is_left_to_its_owner() {
        let home = tempfile::tempdir().unwrap();
        let mut inside = sleeping_in(home.path());

        drop(Rope::of(home.path()).unwrap());

        assert!(inside.try_wait().unwrap().is_none());
        assert!(home.path().exists());
        inside.kill().unwrap();
        inside.wait().unwrap();
    }
}
