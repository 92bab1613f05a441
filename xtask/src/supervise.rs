//! Runs a program so that this process outlives it and the program gets every signal exactly once.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{XtaskError, not_started};

/// Catches the signals that end this process, from the moment this value is made.
///
/// The signals are caught so that the peers are stopped after the program that uses them.
pub struct Supervisor {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Supervisor {
    /// Starts to catch signals.
    pub fn new() -> Result<Self, XtaskError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(XtaskError::Signals)?;
        let catch = |kind| {
            let _inside = runtime.enter();
            signal(kind).map_err(XtaskError::Signals)
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hang_up: catch(SignalKind::hangup())?,
            runtime,
        })
    }

    /// Runs a program to its end and passes signals on to it.
    ///
    /// An `interactive` program stays in this process' group, because a terminal stops a program that reads from it in another group; it
    /// gets the terminal's interrupts itself. Any other program has a group of its own, and gets its signals only from this process.
    pub fn run(&mut self, mut command: Command, interactive: bool) -> Result<ExitStatus, XtaskError> {
        let program = command.get_program().to_string_lossy().into_owned();
        if !interactive {
            command.process_group(0);
        }
        let done = self.runtime.block_on(async {
            let mut child = tokio::process::Command::from(command).spawn()?;
            let pid = child.id();
            loop {
                let heard = tokio::select! {
                    status = child.wait() => return status,
                    _ = self.interrupt.recv() => "INT",
                    _ = self.terminate.recv() => "TERM",
                    _ = self.hang_up.recv() => "HUP",
                };
                if !interactive || heard != "INT" {
                    pass_on(heard, pid)?;
                }
            }
        });
        done.map_err(not_started(&program))
    }
}

fn pass_on(signal: &str, pid: Option<u32>) -> io::Result<()> {
    let Some(pid) = pid else { return Ok(()) };
    Command::new("/bin/kill")
        .args(["-s", signal, &pid.to_string()])
        .status()
        .map(|_| ())
}

/// The exit code that a shell would report.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
