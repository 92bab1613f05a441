//! QMP, the protocol for commands to QEMU and its storage daemon.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::error::{During, LabError};

/// The time limit of an answer. The server serves one client at a time, and others wait.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// A connection.
pub(super) struct Qmp {
    reader: BufReader<UnixStream>,
    /// Events that came before they were waited for.
    events: Vec<Value>,
}

impl Qmp {
    /// Connects, and waits until the server serves this client.
    pub(super) fn connect(socket: &Path) -> Result<Self, LabError> {
        let speaking = || format!("speaking QMP at {}", socket.display());
        let stream = dial(socket).during(speaking)?;
        stream.set_read_timeout(Some(PATIENCE)).during(speaking)?;
        stream.set_write_timeout(Some(PATIENCE)).during(speaking)?;
        let mut qmp = Self {
            reader: BufReader::new(stream),
            events: Vec::new(),
        };
        // The server sends a greeting first.
        qmp.read()?;
        qmp.execute("qmp_capabilities", &json!({}))?;
        Ok(qmp)
    }

    /// Executes a command, and returns its answer.
    pub(super) fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, LabError> {
        let mut line = json!({ "execute": command, "arguments": arguments }).to_string();
        line.push('\n');
        self.reader
            .get_mut()
            .write_all(line.as_bytes())
            .during(|| format!("sending {command}"))?;
        loop {
            let mut said = self.read()?;
            if let Some(answer) = said.get_mut("return") {
                return Ok(answer.take());
            }
            if let Some(error) = said.get("error") {
                return Err(refused(command, error["desc"].as_str().unwrap_or_default()));
            }
            self.events.push(said);
        }
    }

    /// Waits for the event with this name and about this object.
    pub(super) fn until_event(&mut self, name: &str, about: &str) -> Result<(), LabError> {
        let is_it = |said: &Value| said["event"] == name && said["data"]["id"] == about;
        while !self.events.iter().any(is_it) {
            let said = self.read()?;
            self.events.push(said);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Value, LabError> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        if read.during(|| "reading QMP".to_owned())? == 0 {
            return Err(refused("QMP", "the connection has ended"));
        }
        serde_json::from_str(&line).map_err(|source| LabError::Json {
            what: "an answer in QMP".to_owned(),
            source,
        })
    }
}

/// While other clients wait as well the system may refuse a connection for a moment.
fn dial(socket: &Path) -> std::io::Result<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(POLL),
            done => return done,
        }
    }
}

fn refused(program: &str, output: &str) -> LabError {
    LabError::Failed {
        program: program.to_owned(),
        output: output.to_owned(),
    }
}
