//! What hosts write to a shared storage: files, and the lockspace of a real sanlock.

mod nfs;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ringfence_core::{FrozenMethod, Heartbeat, ObservedState, Resource};
use ringfence_workers::WorkerError;
use tempfile::TempDir;

use crate::{drivers, method, no_secrets, seconds};

async fn read(method: &FrozenMethod, hosts: &[&str]) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
    let hosts: Vec<String> = hosts.iter().copied().map(str::to_owned).collect();
    let driver = drivers().get(&method.driver).unwrap();
    driver.heartbeats(method, &no_secrets(), &hosts, seconds(5)).await
}

async fn of(method: &FrozenMethod, host: &str) -> Heartbeat {
    read(method, &[host]).await.unwrap().remove(host).unwrap()
}

#[track_caller]
fn mark(heartbeat: &Heartbeat) -> (String, String) {
    match heartbeat {
        Heartbeat::Written { writer, mark } => (writer.clone(), mark.clone()),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_unclear(heartbeat: &Heartbeat, words: &str) {
    let Heartbeat::Unclear { why } = heartbeat else {
        panic!("{heartbeat:?}");
    };
    assert!(why.contains(words), "{why}");
}

fn files(directory: &Path) -> FrozenMethod {
    let directory = directory.to_str().unwrap();
    method("heartbeat-file", Resource::Heartbeat, &[("directory", directory)])
}

#[tokio::test]
async fn a_file_shows_another_mark_when_its_content_changes_and_only_then() {
    let dir = tempfile::tempdir().unwrap();
    let method = files(dir.path());
    fs::write(dir.path().join("h1"), "1").unwrap();
    let first = of(&method, "h1").await;
    fs::write(dir.path().join("h1"), "1").unwrap();
    assert_eq!(of(&method, "h1").await, first);
    fs::write(dir.path().join("h1"), "2").unwrap();
    let (writer, newer) = mark(&of(&method, "h1").await);
    assert_eq!(writer, mark(&first).0);
    assert_ne!(newer, mark(&first).1);
    // A file that is put in the place of another one.
    fs::write(dir.path().join(".h1"), "3").unwrap();
    fs::rename(dir.path().join(".h1"), dir.path().join("h1")).unwrap();
    assert_ne!(mark(&of(&method, "h1").await).1, newer);
}

#[tokio::test]
async fn what_is_no_file_of_the_host_is_unclear_and_keeps_no_other_host_from_being_read() {
    let dir = tempfile::tempdir().unwrap();
    let method = files(dir.path());
    fs::write(dir.path().join("h1"), "1").unwrap();
    fs::write(dir.path().join("empty"), "").unwrap();
    fs::create_dir(dir.path().join("dir")).unwrap();
    let pipe = Command::new("mkfifo")
        .arg(dir.path().join("pipe"))
        .status()
        .unwrap();
    assert!(pipe.success());
    let read = read(&method, &["h1", "h2", "empty", "dir", "pipe", "../h1"])
        .await
        .unwrap();
    mark(&read["h1"]);
    assert_unclear(&read["h2"], "cannot be read: No such file");
    assert_unclear(&read["empty"], "is empty");
    assert_unclear(&read["dir"], "it is no file");
    assert_unclear(&read["pipe"], "it is no file");
    assert_unclear(&read["../h1"], "is no name of a file");
}

#[tokio::test]
async fn a_directory_that_is_gone_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let gone = read(&files(&dir.path().join("nfs")), &["h1"]).await.unwrap_err();
    assert!(
        gone.to_string().contains("is no directory that can be read"),
        "{gone}"
    );
}

#[tokio::test]
async fn a_check_says_whether_the_storage_can_be_read_and_what_a_host_has_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut method = files(dir.path());
    let driver = drivers().get(&method.driver).unwrap();
    let seen = driver.observe(&method, &no_secrets(), seconds(5)).await.unwrap();
    assert_eq!(
        (seen.state, seen.detail.as_str()),
        (ObservedState::Readable, "the storage can be read")
    );
    assert!(!seen.proves);
    method.parameters.insert("host".to_owned(), "h1".to_owned());
    let seen = driver.observe(&method, &no_secrets(), seconds(5)).await.unwrap();
    assert_eq!(seen.state, ObservedState::Unknown, "{}", seen.detail);
}

/// A lockspace in a file, and the daemon of one host on it.
struct Sanlock {
    dir: TempDir,
    daemon: Option<Child>,
}

impl Sanlock {
    fn init() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let this = Self { dir, daemon: None };
        fs::File::create(this.path())
            .unwrap()
            .set_len(1024 * 1024)
            .unwrap();
        // The shortest time of a reading or writing that it takes: a host is in its lockspace within some seconds.
        this.run(&["direct", "init", "-s", &this.lockspace(0), "-o", "1"]);
        this
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("lockspace")
    }

    fn lockspace(&self, id: u32) -> String {
        format!("LS:{id}:{}:0", self.path().display())
    }

    /// Without the rights of root, and with a socket of its own.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sanlock");
        command
            .args(arguments)
            .env("SANLOCK_PRIVILEGED", "0")
            .env("SANLOCK_RUN_DIR", self.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) {
        let status = self.command(arguments).status().expect("sanlock is needed");
        assert!(status.success(), "sanlock {arguments:?}: {status}");
    }

    /// A host of this name takes the host id, and renews its lease from then on.
    fn join(&mut self, name: &str, id: u32) {
        let daemon = ["daemon", "-D", "-w", "0", "-U", "root", "-G", "root", "-e", name];
        self.daemon = Some(self.command(&daemon).spawn().expect("sanlock is needed"));
        let until = Instant::now() + Duration::from_secs(10);
        while !self.dir.path().join("sanlock.sock").exists() {
            assert!(Instant::now() < until, "sanlock does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        self.run(&["client", "add_lockspace", "-s", &self.lockspace(id), "-o", "1"]);
    }

    fn leave(&self, id: u32) {
        self.run(&["client", "rem_lockspace", "-s", &self.lockspace(id)]);
    }

    fn die(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().unwrap();
            daemon.wait().unwrap();
            fs::remove_file(self.dir.path().join("sanlock.sock")).unwrap();
        }
    }

    fn method(&self) -> FrozenMethod {
        let path = self.path();
        let parameters = [("lockspace", "LS"), ("path", path.to_str().unwrap())];
        method("sanlock", Resource::Heartbeat, &parameters)
    }
}

impl Drop for Sanlock {
    fn drop(&mut self) {
        self.die();
    }
}

async fn until_newer(method: &FrozenMethod, host: &str, known: &Heartbeat) -> Heartbeat {
    for _ in 0..300 {
        let heartbeat = of(method, host).await;
        if heartbeat != *known {
            return heartbeat;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it stays {known:?}");
}

#[tokio::test]
async fn a_real_sanlock_renews_its_lease_leaves_its_lockspace_and_dies() {
    let mut sanlock = Sanlock::init();
    let method = sanlock.method();
    assert_unclear(&of(&method, "1").await, "no host has had the id 1 yet");
    assert_unclear(
        &of(&method, "node-1").await,
        "no host of the lockspace is named \"node-1\"",
    );
    sanlock.join("node-1", 1);
    let first = of(&method, "node-1").await;
    assert_eq!(mark(&first).0, "host id 1 node-1 generation 1");
    assert_eq!(of(&method, "1").await, first);
    let second = until_newer(&method, "1", &first).await;
    assert_eq!(mark(&second).0, mark(&first).0);
    sanlock.leave(1);
    assert_unclear(&of(&method, "node-1").await, "has left the lockspace");
    sanlock.die();
    sanlock.join("node-1", 1);
    assert_eq!(mark(&of(&method, "1").await).0, "host id 1 node-1 generation 2");
    sanlock.die();
    let last = of(&method, "1").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(of(&method, "1").await, last);
}

#[tokio::test]
async fn a_sector_that_is_not_the_lease_of_the_host_is_unclear() {
    let sanlock = Sanlock::init();
    let method = sanlock.method();
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(sanlock.path())
        .unwrap();
    let sector = |id: u64| (id - 1) * 512;
    file.write_all_at(&[1], sector(2) + 40).unwrap();
    file.write_all_at(&[0; 512], sector(3)).unwrap();
    let read = read(&method, &["2", "3", "2001", "0"]).await.unwrap();
    assert_unclear(&read["2"], "its checksum is wrong");
    assert_unclear(&read["3"], "it holds no delta lease of sanlock");
    assert_unclear(&read["2001"], "the lockspace has no host id 2001");
    assert_unclear(&read["0"], "the lockspace has no host id 0");
}

#[tokio::test]
async fn what_is_no_lockspace_of_this_name_is_an_error() {
    let sanlock = Sanlock::init();
    let mut method = sanlock.method();
    method
        .parameters
        .insert("lockspace".to_owned(), "OTHER".to_owned());
    let error = read(&method, &["1"]).await.unwrap_err();
    assert!(
        error.to_string().contains("is the lockspace \"LS\" at byte 0"),
        "{error}"
    );
    fs::write(sanlock.path(), vec![0; 1024 * 1024]).unwrap();
    let error = read(&method, &["1"]).await.unwrap_err();
    assert!(
        error.to_string().contains("it holds no delta lease of sanlock"),
        "{error}"
    );
    fs::remove_file(sanlock.path()).unwrap();
    let error = read(&method, &["1"]).await.unwrap_err();
    assert!(
        error.to_string().contains("cannot be read: No such file"),
        "{error}"
    );
}
