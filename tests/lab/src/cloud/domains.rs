//! The guests that really run on a host, by the files of its virtualization driver.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::error::{During, LabError};

const DOMAINS: &str = "domains.json";
const HISTORY: &str = "history.jsonl";

/// A guest on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    /// The hypervisor's name of the guest.
    pub name: String,
    /// Whether the guest runs.
    pub running: bool,
    /// The guest's processors, memory in MiB and disk in GiB.
    pub size: [u64; 3],
}

/// A change of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The time, to the millisecond.
    pub at: SystemTime,
    /// `spawn`, `destroy`, `power_off`, `power_on`, or `power_lost` with the host's power.
    pub what: String,
    /// The id of the guest's server.
    pub server: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    /// Seconds since 1970.
    at: f64,
    what: String,
    server: String,
}

/// The guests by their servers' ids.
pub(crate) fn read(state: &Path) -> Result<BTreeMap<String, Domain>, LabError> {
    let Some(text) = read_if_there(&state.join(DOMAINS))? else {
        return Ok(BTreeMap::new());
    };
    parse(&text, DOMAINS)
}

/// Every change, the oldest first.
pub(crate) fn read_history(state: &Path) -> Result<Vec<Change>, LabError> {
    let text = read_if_there(&state.join(HISTORY))?.unwrap_or_default();
    // A driver that was killed during a write leaves half a line.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(read_line).collect()
}

/// Stops all guests, as a loss of power does; they stay on the host. The host's driver must not run.
pub(crate) fn stop_all(state: &Path, now: SystemTime) -> Result<(), LabError> {
    let mut domains = read(state)?;
    let at = since_epoch(now).as_secs_f64();
    let mut lines = String::new();
    for (server, domain) in &mut domains {
        if std::mem::replace(&mut domain.running, false) {
            let line = Line {
                at,
                what: "power_lost".to_owned(),
                server: server.clone(),
            };
            lines.push_str(&print(&line, HISTORY)?);
            lines.push('\n');
        }
    }
    let text = print(&domains, DOMAINS)?;
    std::fs::write(state.join(DOMAINS), text).during(|| format!("writing {DOMAINS}"))?;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(state.join(HISTORY))
        .and_then(|mut file| file.write_all(lines.as_bytes()))
        .during(|| format!("writing {HISTORY}"))
}

pub(crate) fn since_epoch(moment: SystemTime) -> Duration {
    moment.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn read_line(text: &str) -> Result<Change, LabError> {
    let line: Line = parse(text, HISTORY)?;
    Ok(Change {
        at: SystemTime::UNIX_EPOCH + Duration::from_secs_f64(line.at.max(0.0)),
        what: line.what,
        server: line.server,
    })
}

fn read_if_there(path: &Path) -> Result<Option<String>, LabError> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some).during(|| format!("reading {}", path.display())),
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T, LabError> {
    serde_json::from_str(text).map_err(|source| unreadable(what, source))
}

fn print(value: &impl Serialize, what: &str) -> Result<String, LabError> {
    serde_json::to_string(value).map_err(|source| unreadable(what, source))
}

fn unreadable(what: &str, source: serde_json::Error) -> LabError {
    LabError::Json {
        what: what.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_power_stops_running_guests_and_is_recorded_for_these_only() {
        let folder = tempfile::tempdir().unwrap();
        let guests = r#"{"a": {"name": "one", "running": true, "size": [1, 64, 1]},
                         "b": {"name": "two", "running": false, "size": [1, 64, 1]}}"#;
        std::fs::write(folder.path().join(DOMAINS), guests).unwrap();

        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        stop_all(folder.path(), now).unwrap();

        let domains = read(folder.path()).unwrap();
        assert_eq!(domains.len(), 2);
        assert!(domains.values().all(|domain| !domain.running));
        let lost = Change {
            at: now,
            what: "power_lost".to_owned(),
            server: "a".to_owned(),
        };
        assert_eq!(read_history(folder.path()).unwrap(), [lost]);
    }

    #[test]
    fn half_a_line_of_history_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let text = "{\"at\": 1.5, \"what\": \"spawn\", \"server\": \"a\"}\n{\"at\": 2.5, \"wh";
        std::fs::write(folder.path().join(HISTORY), text).unwrap();

        assert_eq!(read_history(folder.path()).unwrap().len(), 1);
    }
}
