//! Child processes that end when they are told to: a process group of their own, a deadline, TERM, KILL, and nothing left over, also
//! where a child of theirs has left the group.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::left_behind::{self, RUN};

/// From TERM to the end of the deadline; KILL comes half-way.
const STOPPING: Duration = Duration::from_millis(500);

/// How long output is waited for that a dead child's descendants hold back.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// A program to run. It sees nothing of the worker's own environment.
pub(crate) struct Program {
    pub path: PathBuf,
    pub args: Vec<OsString>,
    pub env: Vec<(&'static str, OsString)>,
    /// What it reads from its standard input.
    pub input: Input,
    /// What it writes beyond this, on either stream, is dropped.
    pub max_output_bytes: usize,
}

/// The standard input of a program.
pub(crate) enum Input {
    /// Written to a pipe, which is closed then.
    Piped(Vec<u8>),
    /// A file that exists only in memory, for a program that reads `/dev/stdin` where it wants the name of a file.
    File(Vec<u8>),
}

impl Input {
    /// What the program gets, and what is written to it afterwards.
    fn open(&self) -> io::Result<(Stdio, &[u8])> {
        match self {
            Self::Piped(bytes) => Ok((Stdio::piped(), bytes)),
            Self::File(bytes) => {
                let mut file = File::from(memfd_create("input", MFdFlags::MFD_CLOEXEC)?);
                file.write_all(bytes)?;
                Ok((Stdio::from(file), &[]))
            }
        }
    }
}

/// How a program ended by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if it died of a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Why a program has not ended by itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("{} is not installed", .0.display())]
    Missing(PathBuf),
    #[error("{} cannot be started", .path.display())]
    Start {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} was still running after {} ms and was killed", .path.display(), .after.as_millis())]
    Killed { path: PathBuf, after: Duration },
    #[error("{} cannot be waited for", .path.display())]
    Wait {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// What every child gets: where programs are, English, and a home, where agents for clouds keep their settings.
pub(crate) fn plain_environment() -> Vec<(&'static str, OsString)> {
    let home = std::env::var_os("HOME").unwrap_or_else(|| OsString::from("/"));
    vec![
        (
            "PATH",
            OsString::from("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ),
        ("LANG", OsString::from("C")),
        ("HOME", home),
    ]
}

/// The child's process group, killed when this goes out of scope, whichever way that is, with all that has left it.
struct Group {
    leader: Pid,
    run: String,
    is_ended: bool,
}

impl Group {
    fn signal(&self, signal: Signal) {
        // An error means that nothing of the group is left, which is what is wanted.
        let _ = killpg(self.leader, signal);
    }

    /// Ends the program as dropping it does, without blocking other tasks.
    async fn end(mut self) {
        self.signal(Signal::SIGKILL);
        let run = self.run.clone();
        self.is_ended = spawn_blocking(move || left_behind::kill_all(&run)).await.is_ok();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_ended {
            self.signal(Signal::SIGKILL);
            left_behind::kill_all(&self.run);
        }
    }
}

/// Runs a program to its end, or until shortly before `until`; then its whole group is dead and reaped.
pub(crate) async fn run(program: Program, until: Instant) -> Result<Ended, ProcessError> {
    let started = Instant::now();
    let stopping = STOPPING.min(until.saturating_duration_since(started) / 2);
    let (term_at, kill_at) = (until - stopping, until - stopping / 2);
    let run = Uuid::new_v4().to_string();
    let (stdin, to_write) = program.input.open().map_err(not_started(&program.path))?;
    let mut child = start(&program, stdin, &run)?;
    let path = program.path.clone();
    let Some(leader) = child.id().and_then(|id| i32::try_from(id).ok()) else {
        return Err(ProcessError::Wait {
            path,
            source: io::Error::other("it has no process id"),
        });
    };
    let group = Group {
        leader: Pid::from_raw(leader),
        run,
        is_ended: false,
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = {
        let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let max = program.max_output_bytes;
        let talk = async {
            tokio::join!(
                feed(stdin, to_write),
                drain(out, &mut stdout, max),
                drain(err, &mut stderr, max)
            )
        };
        wait(&mut child, talk, term_at).await
    };
    if status.is_none() {
        group.signal(Signal::SIGTERM);
        let _ = timeout_at(kill_at, child.wait()).await;
    }
    group.end().await;
    match status {
        Some(Ok(status)) => Ok(ended(status, &stdout, &stderr)),
        Some(Err(source)) => Err(ProcessError::Wait { path, source }),
        None => {
            let _ = timeout_at(until, child.wait()).await;
            Err(ProcessError::Killed {
                path,
                after: started.elapsed(),
            })
        }
    }
}

fn start(program: &Program, stdin: Stdio, run: &str) -> Result<Child, ProcessError> {
    Command::new(&program.path)
        .args(&program.args)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .env(RUN, run)
        .current_dir("/")
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(not_started(&program.path))
}

fn not_started<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> ProcessError {
    let path = path.to_owned();
    move |error| {
        let source = error.into();
        match source.kind() {
            io::ErrorKind::NotFound => ProcessError::Missing(path),
            _ => ProcessError::Start { path, source },
        }
    }
}

/// Talks to the child until it ends; `None` at the deadline. What its descendants still hold back is given up soon.
async fn wait(child: &mut Child, talk: impl Future, term_at: Instant) -> Option<io::Result<ExitStatus>> {
    tokio::pin!(talk);
    let mut talking = true;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            _ = &mut talk, if talking => talking = false,
            () = tokio::time::sleep_until(term_at) => return None,
        }
    };
    if talking {
        let _ = timeout_at(term_at.min(Instant::now() + LAST_OUTPUT), talk).await;
    }
    Some(status)
}

/// A child that does not want its input is no error here: its answer will tell.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
}

/// Keeps what is allowed and reads the rest away, so that a talkative child does not block.
async fn drain(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>, max: usize) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let room = max.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
    }
}

fn ended(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Ended {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: status.code(),
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Program {
        Program {
            path: PathBuf::from("/bin/sh"),
            args: vec!["-c".into(), script.into()],
            env: plain_environment(),
            input: Input::Piped(b"hello\n".to_vec()),
            max_output_bytes: 1024,
        }
    }

    fn within(ms: u64) -> Instant {
        Instant::now() + Duration::from_millis(ms)
    }

    fn is_alive(pid: &str) -> bool {
        // A zombie that waits for its new parent no longer runs.
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z "))
    }

    async fn is_gone(pid: &str) -> bool {
        for _ in 0..500 {
            if !is_alive(pid) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn a_program_reads_its_input_and_sees_a_scrubbed_environment() {
        let ended = run(shell("cat; env; exit 3"), within(10_000)).await.unwrap();
        assert_eq!(ended.code, Some(3));
        assert!(ended.stdout.starts_with("hello\n"), "{ended:?}");
        let mut names: Vec<_> = ended
            .stdout
            .lines()
            .skip(1)
            .filter_map(|l| l.split_once('='))
            .map(|(n, _)| n)
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "PATH", "PWD", RUN]);
    }

    #[tokio::test]
    async fn a_program_can_read_its_input_as_a_file_of_a_known_length() {
        let program = Program {
            input: Input::File(b"a key".to_vec()),
            ..shell("stat -L -c %s /dev/stdin; cat /dev/stdin")
        };
        let ended = run(program, within(10_000)).await.unwrap();
        assert_eq!(ended.stdout, "5\na key");
    }

    #[tokio::test]
    async fn a_program_that_ignores_term_is_killed_with_its_children_before_the_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let script = format!(
            "trap '' TERM; sleep 60 & echo $! >{0}; echo $$ >>{0}; wait; sleep 60",
            pids.display()
        );
        let until = within(1500);
        let error = run(shell(&script), until).await.unwrap_err();
        assert!(matches!(error, ProcessError::Killed { .. }), "{error}");
        assert!(Instant::now() <= until + Duration::from_secs(3));
        for pid in std::fs::read_to_string(&pids).unwrap().lines() {
            // Killed at once; gone when its new parent has reaped it.
            assert!(is_gone(pid).await, "{pid} is alive");
        }
    }

    #[tokio::test]
    async fn a_child_that_outlives_its_parent_is_killed_and_its_open_output_not_waited_for() {
        let ended = run(shell("sleep 60 & echo $!"), within(30_000)).await.unwrap();
        assert_eq!(ended.code, Some(0));
        assert!(is_gone(&ended.stdout).await);
    }

    /// A shell that goes away the way daemons do: in a session of its own, as the child of a child that has ended.
    fn daemon(pids: &std::path::Path, rest: &str) -> Program {
        let pids = pids.display();
        let forked = format!(
            "setsid sh -c 'echo $$ >>{pids}; sleep 60 & echo $! >>{pids}; wait' </dev/null >/dev/null 2>&1 &"
        );
        shell(&format!(
            "(({forked}) &); while [ $(wc -l <{pids} || echo 0) -lt 2 ]; do sleep 0.01; done; {rest}"
        ))
    }

    async fn assert_are_gone(pids: &std::path::Path) {
        let pids = std::fs::read_to_string(pids).unwrap();
        assert_eq!(pids.lines().count(), 2, "{pids}");
        for pid in pids.lines() {
            assert!(is_gone(pid).await, "{pid} is alive");
        }
    }

    #[tokio::test]
    async fn a_child_that_forks_twice_into_a_session_of_its_own_ends_with_its_program_and_at_its_deadline() {
        for rest in ["exit 0", "sleep 60"] {
            let dir = tempfile::tempdir().unwrap();
            let pids = dir.path().join("pids");
            std::fs::write(&pids, "").unwrap();
            let ended = run(daemon(&pids, rest), within(3_000)).await;
            assert_eq!(ended.is_ok(), rest == "exit 0", "{ended:?}");
            assert_are_gone(&pids).await;
        }
    }

    #[tokio::test]
    async fn a_run_that_is_dropped_leaves_no_process() {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let task = tokio::spawn(run(
            shell(&format!("echo $$ >{}; sleep 60", pids.display())),
            within(60_000),
        ));
        let pid = loop {
            match std::fs::read_to_string(&pids) {
                Ok(pid) if pid.ends_with('\n') => break pid,
                _ => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(is_gone(&pid).await);
    }

    #[tokio::test]
    async fn output_beyond_the_bound_is_dropped_and_blocks_no_child() {
        let ended = run(shell("head -c 1000000 /dev/zero"), within(10_000))
            .await
            .unwrap();
        assert_eq!((ended.code, ended.stdout.len()), (Some(0), 1024));
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_told_from_one_that_fails() {
        let program = Program {
            path: PathBuf::from("/nonexistent/ipmitool"),
            ..shell("")
        };
        let error = run(program, within(1000)).await.unwrap_err();
        assert_eq!(error.to_string(), "/nonexistent/ipmitool is not installed");
    }
}
