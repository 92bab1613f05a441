//! The judge: which containers each node runs, and since when.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use super::Kubelet;
use crate::error::{During, LabError};

/// A container's time on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRun {
    /// The node.
    pub node: String,
    /// The id of the node's boot.
    pub boot: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// The pod's uid.
    pub uid: String,
    /// The container's name.
    pub container: String,
    /// The start, in milliseconds since 1970 by this machine's clock.
    pub from_ms: i64,
    /// The end, or the death of the host. A container on a frozen host has not ended.
    pub until_ms: Option<i64>,
}

impl ContainerRun {
    /// Whether the container runs now.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        self.until_ms.is_none()
    }

    /// Whether this is another run of one container of one member, elsewhere, at a time when both ran.
    fn collides_with(&self, other: &Self) -> bool {
        let member = |run: &Self| (run.namespace.clone(), run.pod.clone(), run.container.clone());
        let ends = |run: &Self| run.until_ms.unwrap_or(i64::MAX);
        self.node != other.node
            && member(self) == member(other)
            && self.from_ms < ends(other)
            && other.from_ms < ends(self)
    }
}

/// Two runs of one pod's container on two nodes at one time, if there were any: a split brain.
///
/// # Errors
/// If a node's list cannot be read.
pub fn running_twice<'a>(
    nodes: impl IntoIterator<Item = &'a Kubelet>,
) -> Result<Option<(ContainerRun, ContainerRun)>, LabError> {
    let mut all = Vec::new();
    for node in nodes {
        all.extend(node.runs()?);
    }
    Ok(collision(&all))
}

fn collision(all: &[ContainerRun]) -> Option<(ContainerRun, ContainerRun)> {
    all.iter().enumerate().find_map(|(number, run)| {
        let other = all[number + 1..].iter().find(|other| run.collides_with(other))?;
        Some((run.clone(), other.clone()))
    })
}

/// A line of a node's list.
#[derive(Deserialize)]
struct Line {
    at_ms: i64,
    boot: String,
    event: Event,
    namespace: String,
    pod: String,
    uid: String,
    container: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Event {
    Started,
    Ended,
}

/// Reads a node's list. A boot that has ended took its containers with it.
pub(super) fn read(
    list: &Path,
    node: &str,
    ended_ms: impl Fn(&str) -> Option<i64>,
) -> Result<Vec<ContainerRun>, LabError> {
    let text = match std::fs::read_to_string(list) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        done => done.during(|| format!("reading {}", list.display()))?,
    };
    let mut runs = Vec::new();
    // A host that dies may leave half a line, after which nothing more of that boot ran.
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        note(&mut runs, node, line);
    }
    for run in runs.iter_mut().filter(|run| run.goes_on()) {
        run.until_ms = ended_ms(&run.boot);
    }
    Ok(runs)
}

fn note(runs: &mut Vec<ContainerRun>, node: &str, line: Line) {
    if line.event == Event::Started {
        runs.push(ContainerRun {
            node: node.to_owned(),
            boot: line.boot,
            namespace: line.namespace,
            pod: line.pod,
            uid: line.uid,
            container: line.container,
            from_ms: line.at_ms,
            until_ms: None,
        });
        return;
    }
    let mut open = runs.iter_mut().filter(|run| run.goes_on());
    let ended =
        open.find(|run| run.boot == line.boot && run.uid == line.uid && run.container == line.container);
    if let Some(run) = ended {
        run.until_ms = Some(line.at_ms);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the nodes write this machine's time into their lists"
)]
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at_ms: i64, boot: &str, event: &str) -> String {
        format!(
            "{{\"at_ms\":{at_ms},\"boot\":\"{boot}\",\"event\":\"{event}\",\"namespace\":\"default\",\"pod\":\"db-0\",\"uid\":\"u\",\"container\":\"main\"}}\n"
        )
    }

    fn runs(node: &str, lines: &[String], ended_ms: impl Fn(&str) -> Option<i64>) -> Vec<ContainerRun> {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("list");
        std::fs::write(&list, lines.concat()).unwrap();
        read(&list, node, ended_ms).unwrap()
    }

    #[test]
    fn a_container_runs_until_its_end_or_the_death_of_its_host() {
        let lines = [
            line(1, "a", "started"),
            line(5, "a", "ended"),
            line(6, "a", "started"),
            line(9, "b", "started"),
        ];
        let runs = runs("n1", &lines, |boot| (boot == "a").then_some(8));
        let times: Vec<_> = runs.iter().map(|run| (run.from_ms, run.until_ms)).collect();
        assert_eq!(times, [(1, Some(5)), (6, Some(8)), (9, None)]);
    }

    #[test]
    fn a_member_on_two_hosts_at_once_is_seen() {
        let here = runs("n1", &[line(1, "a", "started")], |_| None);
        let later = runs("n2", &[line(7, "b", "started")], |_| None);
        assert!(collision(&[here.clone(), later.clone()].concat()).is_some());

        let killed = runs("n1", &[line(1, "a", "started")], |_| Some(6));
        assert_eq!(collision(&[killed, later].concat()), None);
        assert_eq!(collision(&here), None);
    }
}
