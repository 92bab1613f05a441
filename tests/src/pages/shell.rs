//! The shell in which a page's commands run.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::Machine;

/// The time limit of one command.
const PATIENCE: Duration = Duration::from_secs(120);
const MARK: &str = "\u{1}done";
/// Processes that the shell starts end with the shell, and with the test, also when the test is killed.
const BEGIN: &str =
    "exec 2>&1\n{ while kill -0 $PPID; do sleep 1; done; kill -KILL 0; } >/dev/null 2>&1 &\ndisown\n";

/// A `bash` in the home of a [`Machine`], which keeps its variables from command to command.
pub struct Shell {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    home: PathBuf,
    /// Texts of the pages, and their replacements in this run.
    here: Vec<(String, String)>,
    is_stuck: bool,
}

impl Shell {
    /// Opens a shell with the machine's variables; its `PATH` has the folder `bin` of the machine's home, then `ringfence`.
    pub fn open(machine: &Machine) -> Self {
        let home = machine.path().to_owned();
        let bin = home.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let link = bin.join("ringfence");
        if !link.exists() {
            std::os::unix::fs::symlink(Machine::program(), link).unwrap();
        }
        std::fs::write(home.join(".curlrc"), "silent\nshow-error\n").unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .env_clear()
            .envs(machine.variables())
            .env("HOME", &home)
            .env("PATH", format!("{}:{path}:/usr/sbin", bin.display()))
            .env("LC_ALL", "C.UTF-8")
            .current_dir(&home)
            .stdin(std::process::Stdio::piped())
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .process_group(0)
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(BEGIN.as_bytes()).unwrap();
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
                if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            input,
            lines,
            home,
            here: Vec::new(),
            is_stuck: false,
        }
    }

    /// From now on the text `shown` of the page is replaced by `real`.
    pub fn means(&mut self, shown: &str, real: impl Into<String>) {
        self.here.retain(|(known, _)| known != shown);
        self.here.push((shown.to_owned(), real.into()));
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Whether a command did not end, or ended the shell: then no further command can run.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// The page's text with this run's replacements.
    pub fn real(&self, shown: &str) -> String {
        let replace = |text: String, (shown, real): &(String, String)| text.replace(shown, real);
        self.here.iter().fold(shown.to_owned(), replace)
    }

    fn as_shown(&self, real: &str) -> String {
        let replace = |text: String, (shown, real): &(String, String)| text.replace(real, shown);
        self.here.iter().rev().fold(real.to_owned(), replace)
    }

    /// Runs a command: what it printed, and its exit code; `None` if it did not end, or ended the shell.
    pub fn run(&mut self, command: &str) -> (String, Option<i32>) {
        let script = self.home.join(".command");
        std::fs::write(&script, self.real(command)).unwrap();
        let line = format!(". {} </dev/null; printf '\\n{MARK} %d\\n' $?\n", script.display());
        if self.input.write_all(line.as_bytes()).is_err() {
            self.is_stuck = true;
            return ("(the shell has ended)".to_owned(), None);
        }
        let mut printed: Vec<String> = Vec::new();
        let deadline = Instant::now() + PATIENCE;
        let code = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => match line.strip_prefix(MARK) {
                    Some(code) => break code.trim().parse().ok(),
                    None => printed.push(line),
                },
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break None,
            }
        };
        self.is_stuck = code.is_none();
        // The mark begins a new line, also after output without a last line break.
        printed.pop_if(|line| line.is_empty());
        (self.as_shown(&printed.join("\n")), code)
    }

    /// Starts a command in the background, and waits until it has printed `until`.
    ///
    /// # Errors
    /// What the command printed instead.
    pub fn start(&mut self, name: &str, command: &str, until: &str) -> Result<(), String> {
        let log = self.home.join(format!(".{name}.log"));
        let command = command.trim();
        let command = command.strip_prefix("$ ").unwrap_or(command);
        let (said, code) = self.run(&format!("{command} >{} 2>&1 &\n", log.display()));
        if code != Some(0) {
            return Err(said);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let printed = std::fs::read_to_string(&log).unwrap_or_default();
            if printed.contains(until) {
                self.learn(&printed);
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(printed);
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Learns from the output of a service on which address it listens.
    pub fn learn(&mut self, printed: &str) {
        let after = |marker: &str| {
            let (_, rest) = printed.split_once(marker)?;
            let end = |c: char| c != ':' && c != '.' && !c.is_ascii_digit();
            rest.split(end).next().map(str::to_owned)
        };
        if let Some(api) = after("Ringfence runs on http://").or_else(|| after("listens address=")) {
            self.means("127.0.0.1:8790", api);
        }
        if let Some(simulators) = after("curl -X PUT http://") {
            self.means("127.0.0.1:41235", simulators);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        // Gives services time to stop in order.
        let _ = killpg(group, Signal::SIGTERM);
        std::thread::sleep(Duration::from_millis(200));
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
