//! The `ringfence` program, run as processes of their own.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ringfence_lab::Rope;
use serde_json::Value;

/// A machine of its own: an empty home, and an environment that holds nothing but what the test puts there.
pub struct Machine {
    _rope: Rope,
    home: tempfile::TempDir,
    variables: Vec<(String, String)>,
    /// Another build than the one that is tested.
    other_build: Option<PathBuf>,
}

/// How a command ended.
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

    /// One that is set up as another, with another build of the program. It uses the other's files.
    pub fn with_build(other: &Self, build: impl Into<PathBuf>) -> Self {
        Self {
            variables: other.variables.clone(),
            other_build: Some(build.into()),
            ..Self::new()
        }
    }

    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// Its home.
    pub fn path(&self) -> &Path {
        self.home.path()
    }

    /// What the test has put into its environment.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        self.variables.iter().cloned()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Runs `ringfence` with these words to its end.
    pub async fn run(&self, words: &[&str]) -> Run {
        self.run_with(words, &[]).await
    }

    /// The same with more in its environment.
    pub async fn run_with(&self, words: &[&str], more: &[(&str, &str)]) -> Run {
        let mut command = self.command(words);
        command.envs(more.iter().copied());
        let output = tokio::task::spawn_blocking(move || command.output())
            .await
            .unwrap()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    /// Starts `ringfence` with these words and leaves it running.
    pub fn start(&self, name: &str, words: &[&str]) -> Service {
        self.start_with(name, words, &[])
    }

    /// The same with more in its environment.
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

    /// The program itself.
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

/// From `RINGFENCE_TEST_BINARY`, or where Cargo puts it beside the tests.
fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("RINGFENCE_TEST_BINARY") {
        return PathBuf::from(path);
    }
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("ringfence");
    assert!(
        path.is_file(),
        "{} is not there; run the tests with `cargo xtask test`",
        path.display()
    );
    path
}

/// A running service. It does not outlive its value, whatever becomes of the test.
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

    /// Everything that it has printed so far.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until it has printed all of these words, in any order.
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
                "{} never said {words:?}:\n{printed}",
                self.name
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until it serves, and tells at which URL. `ready` is how it says so.
    pub async fn until_it_listens(&mut self, ready: &str) -> String {
        let marker = format!("{ready} address=");
        loop {
            let printed = self.until_says(&[&marker]).await;
            let (_, rest) = printed.split_once(&marker).unwrap();
            // Half a line may be there.
            if let Some((address, _)) = rest.split_once(char::is_whitespace) {
                return format!("http://{address}");
            }
        }
    }

    /// Tells it to read its files again.
    pub fn hang_up(&self) {
        kill(
            Pid::from_raw(i32::try_from(self.child.id()).unwrap()),
            Signal::SIGHUP,
        )
        .unwrap();
    }

    /// Ends it as a loss of power would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to stop, and waits for that: seconds at most, and in good order.
    pub async fn stop(mut self) {
        kill(
            Pid::from_raw(i32::try_from(self.child.id()).unwrap()),
            Signal::SIGTERM,
        )
        .unwrap();
        let status = self.until_it_ends().await;
        assert!(
            status.success(),
            "{} ended with {status}:\n{}",
            self.name,
            self.printed()
        );
    }

    /// Waits until it ends by itself.
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
                "{} does not end:\n{}",
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
        // Fails only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Tells whoever reads the output of the tests.
#[expect(
    clippy::print_stderr,
    reason = "the standard error of a test is where its reader looks"
)]
pub fn tell(text: &str) {
    eprintln!("{text}");
}
