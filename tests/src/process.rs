//! The `ringfence` program as separate processes.

use std::io::{Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence_lab::Rope;
use serde_json::Value;

/// A command that runs to its end has ended by then.
const LONGEST_RUN: Duration = Duration::from_secs(180);

/// A machine: an empty home, and an environment with nothing but the variables that the test sets.
pub struct Machine {
    _rope: Rope,
    home: tempfile::TempDir,
    variables: Vec<(String, String)>,
    /// Another build of the program than the tested one, or a program that becomes the tested one.
    other_build: Option<PathBuf>,
}

/// The result of a command that has ended.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self {
            _rope: Rope::of(home.path()).unwrap(),
            home,
            variables: Vec::new(),
            other_build: None,
        }
    }

    /// A machine that uses the files and variables of `other`, with another build of the program.
    pub fn with_build(other: &Self, build: impl Into<PathBuf>) -> Self {
        Self {
            variables: other.variables.clone(),
            other_build: Some(build.into()),
            ..Self::new()
        }
    }

    /// The program is started by this script, which becomes it: its arguments are the program and the program's.
    pub fn starts_by(mut self, script: &str) -> Self {
        let file = self.file("start");
        let text = format!(
            "#!/bin/sh\nset -eu\nset -- {:?} \"$@\"\n{script}\n",
            program().display().to_string()
        );
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o700)).unwrap();
        self.other_build = Some(file);
        self
    }

    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// The machine's home.
    pub fn path(&self) -> &Path {
        self.home.path()
    }

    /// The variables that the test has set.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.variables.iter().cloned()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Runs `ringfence` with these arguments to its end.
    pub async fn run(&self, words: &[&str]) -> Run {
        self.run_with(words, &[]).await
    }

    /// Runs `ringfence` with these arguments and more variables.
    pub async fn run_with(&self, words: &[&str], more: &[(&str, &str)]) -> Run {
        let (mut out, mut err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let mut command = tokio::process::Command::from(self.command(words));
        command
            .envs(more.iter().copied())
            .stdout(out.try_clone().unwrap())
            .stderr(err.try_clone().unwrap())
            .kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let ended = tokio::time::timeout(LONGEST_RUN, child.wait()).await;
        let (out, err) = (printed(&mut out), printed(&mut err));
        let Ok(status) = ended else {
            panic!("{words:?} has not ended after {LONGEST_RUN:?}; it printed:\n{out}{err}");
        };
        Run {
            code: status.unwrap().code(),
            out,
            err,
        }
    }

    /// Starts `ringfence` with these arguments and leaves it running.
    pub fn start(&self, name: &str, words: &[&str]) -> Service {
        self.start_with(name, words, &[])
    }

    /// Starts `ringfence` with these arguments and more variables.
    pub fn start_with(&self, name: &str, words: &[&str], more: &[(&str, &str)]) -> Service {
        let log = self.file(&format!("{name}.log"));
        let file = std::fs::File::create(&log).unwrap();
        let child = self
            .command(words)
            .envs(more.iter().copied())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Service {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// The path of the program.
    pub fn program() -> PathBuf {
        program()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.other_build.clone().unwrap_or_else(program));
        command
            .args(words)
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.variables.iter().cloned())
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }
}

/// Everything that was written to a file.
fn printed(file: &mut std::fs::File) -> String {
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

/// From `RINGFENCE_TEST_BINARY`, or where Cargo puts the program beside the tests.
fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("RINGFENCE_TEST_BINARY") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("ringfence");
    assert!(
        path.is_file(),
        "the program {} does not exist; run the tests with `cargo xtask test`",
        path.display()
    );
    path
}

/// A running service. It is killed when the value is dropped, also when the test panics.
pub struct Service {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Service {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything that the service has printed so far.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the service has printed all of these words, in any order.
    pub async fn until_says(&mut self, words: &[&str]) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let ended = self.child.try_wait().unwrap();
            let printed = self.printed();
            if words.iter().all(|word| printed.contains(word)) {
                return printed;
            }
            assert!(ended.is_none(), "{} ended with {ended:?}:\n{printed}", self.name);
            assert!(
                Instant::now() < deadline,
                "{} did not print {words:?}; it printed:\n{printed}",
                self.name
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the service listens, and returns its URL. `ready` is the text that the service prints before its address.
    pub async fn until_it_listens(&mut self, ready: &str) -> String {
        let marker = format!("{ready} address=");
        loop {
            let printed = self.until_says(&[&marker]).await;
            let (_, rest) = printed.split_once(&marker).unwrap();
            // The last line may be incomplete.
            if let Some((address, _)) = rest.split_once(char::is_whitespace) {
                return format!("http://{address}");
            }
        }
    }

    /// Sends SIGHUP: the service reads its files again.
    pub fn hang_up(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// Halts the service, as a machine that stands still would.
    pub fn halt(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets a halted service go on.
    pub fn go_on(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Kills the service with SIGKILL, as a loss of power would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, and panics unless the service stops in order within seconds.
    pub async fn stop(mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.until_it_ends().await;
        assert!(
            status.success(),
            "{} ended with {status}:\n{}",
            self.name,
            self.printed()
        );
    }

    /// Waits until the service ends by itself.
    pub async fn until_it_ends(&mut self) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert_eq!(
                    status.signal(),
                    None,
                    "{} was killed:\n{}",
                    self.name,
                    self.printed()
                );
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "{} did not end; it printed:\n{}",
                self.name,
                self.printed()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // A second panic here would hide the first.
        if std::thread::panicking() {
            let printed = std::fs::read_to_string(&self.log).unwrap_or_else(|error| error.to_string());
            tell(&format!("{} has printed:\n{printed}", self.name));
        }
        // Fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints a line to the output of the tests.
#[expect(
    clippy::print_stderr,
    reason = "the standard error of a test is where its reader looks"
)]
pub fn tell(text: &str) {
    eprintln!("{text}");
}
