//! Ends what a program leaves behind, also what has left its process group, its session and its parent.
//!
//! Each run has a name, which is in the environment of all its descendants. The parent's id does not identify them: an orphan has another
//! parent, and its first one is not recorded.

use std::collections::HashSet;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The variable with the name of the run.
pub(crate) const RUN: &str = "RINGFENCE_RUN";
/// Looks for processes that were begun during the look before.
const LOOKS: usize = 20;

struct Process {
    pid: i32,
    parent: i32,
    is_of_run: bool,
}

/// Kills all that descends from a run, and what that begins meanwhile. Blocks on the file system.
pub(crate) fn kill_all(run: &str) {
    let mut killed = HashSet::new();
    for _ in 0..LOOKS {
        let left = descendants(run);
        let new: Vec<i32> = left.into_iter().filter(|pid| killed.insert(*pid)).collect();
        if new.is_empty() {
            return;
        }
        for pid in new {
            // An error means that it has ended.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
    tracing::warn!(
        "a fence agent begins processes faster than they can be ended; look for what it has left behind"
    );
}

fn descendants(run: &str) -> HashSet<i32> {
    let processes = processes(run);
    let mut found: HashSet<i32> = HashSet::new();
    loop {
        let known = found.len();
        let of_run = processes
            .iter()
            .filter(|process| process.is_of_run || found.contains(&process.parent));
        let of_run: Vec<i32> = of_run.map(|process| process.pid).collect();
        found.extend(of_run);
        if found.len() == known {
            return found;
        }
    }
}

fn processes(run: &str) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let marker = format!("{RUN}={run}");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| read(pid, &marker)).collect()
}

/// `None` where it has ended, or waits for its parent to hear of that.
fn read(pid: i32, marker: &str) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name, which may hold anything, is in brackets; its state and its parent follow.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let is_zombie = fields.next()? == "Z";
    let parent = fields.next()?.parse().ok()?;
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables = environment.split(|byte| *byte == 0);
    (!is_zombie).then(|| Process {
        pid,
        parent,
        is_of_run: variables.any(|variable| variable == marker.as_bytes()),
    })
}
