//! Services that hang.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cloud::Cloud;
use crate::error::LabError;

/// A hung service: it answers no request, and requests wait. Dropping the value ends the hang.
#[derive(Debug)]
pub struct Paused(Vec<Pid>);

impl Cloud {
    /// Makes a service of this cloud hang, such as `cinder-volume`.
    ///
    /// # Errors
    /// If the service does not run.
    pub fn pause(&self, service: &str) -> Result<Paused, LabError> {
        let script = self.description().folder.join("programs").join("run.py");
        let script = script.display().to_string();
        let is_it = |words: &[String]| {
            words.get(1) == Some(&script) && words.get(2).is_some_and(|name| name == service)
        };
        let paused = Paused(
            processes()
                .filter(|(_, words)| is_it(words))
                .map(|(pid, _)| pid)
                .collect(),
        );
        if paused.0.is_empty() {
            return Err(LabError::NotSeen {
                what: format!("a process of {service}"),
                seconds: 0,
                seen: "none".to_owned(),
            });
        }
        paused.signal(Signal::SIGSTOP);
        Ok(paused)
    }
}

impl Paused {
    fn signal(&self, signal: Signal) {
        for pid in &self.0 {
            // A process that has ended meanwhile needs no signal.
            let _ = kill(*pid, signal);
        }
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.signal(Signal::SIGCONT);
    }
}

/// All processes with their command lines.
fn processes() -> impl Iterator<Item = (Pid, Vec<String>)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        Some((Pid::from_raw(pid), line.split('\0').map(str::to_owned).collect()))
    })
}
