//! The fence agent alone: the least time that a fence with it can take.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::error::BenchError;

/// The agent that needs no device: it keeps the power state in a file.
pub const AGENT: &str = "/usr/sbin/fence_dummy";

/// Runs the agent once as the driver does, and returns how long that took in milliseconds.
pub async fn run(action: &str, status_file: &Path) -> Result<f64, BenchError> {
    let doing = || BenchError::system(format!("run {AGENT}"));
    let input = format!("status_file={}\naction={action}\n", status_file.display());
    let begun = Instant::now();
    let mut child = Command::new(AGENT)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LANG", "C")
        .env("HOME", "/")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(doing())?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).await.map_err(doing())?;
    }
    let output = child.wait_with_output().await.map_err(doing())?;
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    // A status of "off" ends with 2.
    match output.status.code() {
        Some(0 | 2) => Ok(took),
        other => Err(BenchError::Unexpected {
            what: format!("how {AGENT} ended"),
            found: format!("{other:?}: {}", String::from_utf8_lossy(&output.stderr)),
        }),
    }
}

/// A script in the agent's place that notes each call and runs the real agent.
pub struct Counting {
    log: PathBuf,
}

impl Counting {
    /// Installs the script in place of the agent in `folder`.
    pub fn install(folder: &Path) -> Result<Self, BenchError> {
        use std::os::unix::fs::PermissionsExt;
        let doing = || BenchError::system(format!("write an agent into {}", folder.display()));
        let (agent, log) = (folder.join("fence_dummy"), folder.join("calls"));
        let script = format!(
            "#!/bin/sh\ninput=$(cat)\nprintf '%s\\n' \"$input\" | tr '\\n' ' ' >>{log}\necho >>{log}\nprintf '%s\\n' \"$input\" | {AGENT}\n",
            log = log.display()
        );
        std::fs::remove_file(&agent).map_err(doing())?;
        std::fs::write(&agent, script).map_err(doing())?;
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).map_err(doing())?;
        let counting = Self { log };
        counting.clear()?;
        Ok(counting)
    }

    pub fn clear(&self) -> Result<(), BenchError> {
        std::fs::write(&self.log, "").map_err(BenchError::system("empty the list of calls"))
    }

    /// The actions with this file so far, in their order: other hosts' devices may be checked meanwhile.
    pub fn actions(&self, status_file: &Path) -> Result<Vec<String>, BenchError> {
        let text =
            std::fs::read_to_string(&self.log).map_err(BenchError::system("read the list of calls"))?;
        let file = format!("status_file={}", status_file.display());
        let calls = text.lines().map(str::split_whitespace);
        let own = calls.filter(|words| words.clone().any(|word| word == file));
        let actions = own.filter_map(|mut words| words.find_map(|word| word.strip_prefix("action=")));
        Ok(actions.map(str::to_owned).collect())
    }
}

/// A folder with nothing but the agent.
pub fn agents(folder: &Path) -> Result<(), BenchError> {
    let doing = || BenchError::system(format!("make {}", folder.display()));
    std::fs::create_dir_all(folder).map_err(doing())?;
    std::os::unix::fs::symlink(AGENT, folder.join("fence_dummy")).map_err(doing())
}
