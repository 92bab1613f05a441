//! A program that ends with its owner.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::error::{During, LabError};

const SCRIPT: &str = include_str!("leash.sh");
/// Time that a program has to end after its stop signal.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that a program has to end after SIGABRT.
const ABORT_TIMEOUT: Duration = Duration::from_secs(3);

/// What to start, and how.
pub(crate) struct Start<'a> {
    pub program: &'a Path,
    pub arguments: Vec<String>,
    pub environment: Vec<(&'static str, String)>,
    /// Variables that are removed from the program's environment.
    pub without: &'static [&'static str],
    /// The signal that stops the program in order.
    pub stop_signal: Signal,
    pub log: &'a Path,
    /// The folder that is removed if the owner dies.
    pub home: &'a Path,
    /// The user that runs the program, if it is another one.
    pub user: Option<(u32, u32)>,
}

impl<'a> Start<'a> {
    /// Without arguments, in our own environment.
    pub(crate) fn new(program: &'a Path, log: &'a Path, home: &'a Path) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            environment: Vec::new(),
            without: &[],
            stop_signal: Signal::SIGTERM,
            log,
            home,
            user: None,
        }
    }
}

/// A running program. Dropping it stops the program.
///
/// A shell is between owner and program, because its stdin is a pipe that closes with the owner's process, also after SIGKILL.
/// (`PR_SET_PDEATHSIG` would end the program with the thread that started it, which is too early.)
#[derive(Debug)]
pub(crate) struct Leash {
    shell: Child,
    rope: Option<ChildStdin>,
    pid: Pid,
    program: PathBuf,
}

impl Leash {
    pub(crate) fn start(start: Start<'_>) -> Result<Self, LabError> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, "leash.sh", signal_name(start.stop_signal)])
            .arg(start.log)
            .arg(start.home)
            .arg(start.program)
            .args(&start.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .current_dir(start.home)
            .process_group(0);
        for name in start.without {
            command.env_remove(name);
        }
        command.envs(start.environment.iter().map(|(name, value)| (name, value)));
        if let Some((uid, gid)) = start.user {
            command.uid(uid).gid(gid);
        }
        let starting = || format!("starting {}", start.program.display());
        let mut shell = command.spawn().during(starting)?;
        let rope = shell.stdin.take();
        let pid = read_pid(&mut shell).during(starting)?;
        Ok(Self {
            shell,
            rope,
            pid,
            program: start.program.to_owned(),
        })
    }

    /// Whether the program still runs (an ended program stays a zombie until its shell has read its status). A program whose first thread
    /// has ended still runs in its other threads, which may be in the middle of a write.
    pub(crate) fn is_running(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid));
        let is_there = |stat: String| !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"));
        stat.is_ok_and(is_there) || self.threads() > 1
    }

    fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.pid)).map_or(0, Iterator::count)
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), LabError> {
        kill(self.pid, signal).during(|| format!("sending {signal} to {}", self.program.display()))
    }

    /// Kills a program that hangs, after it had the time to write where: Python does so on SIGABRT if `PYTHONFAULTHANDLER` is set.
    pub(crate) fn abort(&mut self) {
        // A program that has ended by itself has nothing to write.
        let _ = self.signal(Signal::SIGABRT);
        let begun = Instant::now();
        while begun.elapsed() < ABORT_TIMEOUT && self.is_running() {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.crash();
    }

    /// Kills the program and all its processes at once, as a loss of power would. The files stay.
    pub(crate) fn crash(&mut self) {
        // The shell is killed with the others: otherwise it would take the end of its stdin for the owner's death.
        let _ = killpg(self.group(), Signal::SIGKILL);
        let _ = self.shell.wait();
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT && self.is_running() {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.rope = None;
    }

    /// The process group of the shell, to which every process of the program belongs.
    fn group(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.shell.id()).unwrap_or(i32::MAX))
    }

    /// Stops the program in order, or kills it after 20 s.
    pub(crate) fn stop(&mut self) {
        let Some(mut rope) = self.rope.take() else {
            return;
        };
        // Writing fails only if the shell is gone, which the wait below finds out as well.
        let _ = rope.write_all(b"stop\n");
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT && matches!(self.shell.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = killpg(self.group(), Signal::SIGKILL);
        let _ = self.shell.wait();
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.stop();
    }
}

fn read_pid(shell: &mut Child) -> std::io::Result<Pid> {
    let stdout = shell.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let pid: i32 = line
        .trim()
        .parse()
        .map_err(|_| std::io::Error::other(format!("the shell answered {line:?} instead of a process id")))?;
    Ok(Pid::from_raw(pid))
}

fn signal_name(signal: Signal) -> &'static str {
    signal.as_str().trim_start_matches("SIG")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeping(home: &Path) -> Leash {
        Leash::start(Start {
            arguments: vec!["600".to_owned()],
            ..Start::new(Path::new("/bin/sleep"), &home.join("log"), home)
        })
        .unwrap()
    }

    #[test]
    fn a_dropped_leash_ends_the_program_and_leaves_its_files_to_the_owner() {
        let folder = tempfile::tempdir().unwrap();
        let leash = sleeping(folder.path());
        let pid = leash.pid;
        assert!(leash.is_running());

        drop(leash);

        assert!(kill(pid, None).is_err());
        assert!(folder.path().exists());
    }

    #[test]
    fn a_program_and_its_files_do_not_outlive_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        std::fs::write(&elsewhere, "").unwrap();
        std::fs::write(home.join("outside"), format!("{}\n", elsewhere.display())).unwrap();
        let mut leash = sleeping(&home);

        drop(leash.rope.take());
        leash.shell.wait().unwrap();

        assert!(kill(leash.pid, None).is_err());
        assert!(!home.exists() && !elsewhere.exists());
    }

    #[test]
    fn a_crash_ends_what_the_program_has_started_and_leaves_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let (mut leash, child) = with_a_child(folder.path());

        leash.crash();

        assert!(!leash.is_running());
        assert!(has_ended(child));
        assert!(folder.path().join("log").exists());
    }

    #[test]
    fn processes_of_a_program_end_with_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let (mut leash, child) = with_a_child(&home);

        drop(leash.rope.take());
        leash.shell.wait().unwrap();

        assert!(has_ended(child));
        assert!(!home.exists());
    }

    fn with_a_child(home: &Path) -> (Leash, Pid) {
        let log = home.join("log");
        let leash = Leash::start(Start {
            arguments: ["-c", "sleep 600 & echo $!; wait"].map(str::to_owned).to_vec(),
            ..Start::new(Path::new("/bin/sh"), &log, home)
        })
        .unwrap();
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            if let Ok(pid) = text.trim().parse() {
                return (leash, Pid::from_raw(pid));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process has ended. It is no child of this process, so that a zombie counts as ended.
    fn has_ended(pid: Pid) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < STOP_TIMEOUT {
            match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
                Ok(stat) if !stat.contains(") Z") => std::thread::sleep(Duration::from_millis(5)),
                Ok(_) | Err(_) => return true,
            }
        }
        false
    }

    #[test]
    fn a_program_that_has_ended_is_not_running() {
        let folder = tempfile::tempdir().unwrap();
        let leash = sleeping(folder.path());

        leash.signal(Signal::SIGKILL).unwrap();

        let begun = Instant::now();
        while leash.is_running() && begun.elapsed() < STOP_TIMEOUT {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!leash.is_running());
    }
}
