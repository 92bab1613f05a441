//! Connects a BMC to its machine's power button.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::sys::stat::Mode;

use crate::error::{During, LabError};

/// The pipe to which `chassis.sh` writes lines of a verb and a number; the answer is in the file `answer.NUMBER`.
const PIPE: &str = "button";
/// The line that ends the thread.
const END: &str = "end\n";

/// A machine with a power button.
pub(crate) trait Machine: std::fmt::Debug + Send + Sync {
    fn is_on(&self) -> bool;
    fn switch_on(&self) -> Result<(), LabError>;
    /// Returns when nothing of the machine runs any more.
    fn switch_off(&self);
    fn reset(&self) -> Result<(), LabError>;
}

/// Carries out the BMC's requests to the machine until it is dropped.
#[derive(Debug)]
pub(crate) struct Button {
    machine: Arc<dyn Machine>,
    pipe: File,
    thread: Option<JoinHandle<()>>,
}

impl Button {
    /// Connects the folder of a BMC to the machine.
    pub(crate) fn wire(folder: &Path, machine: Arc<dyn Machine>) -> Result<Self, LabError> {
        let path = folder.join(PIPE);
        let laying = || format!("making {}", path.display());
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).during(laying)?;
        // Open for reading and writing, so that the pipe has no end and no open blocks.
        let pipe = OpenOptions::new().read(true).write(true).open(&path);
        let pipe = pipe.during(laying)?;
        let asked = BufReader::new(pipe.try_clone().during(laying)?);
        let (folder, of_thread) = (folder.to_owned(), Arc::clone(&machine));
        let thread = std::thread::spawn(move || serve(asked, &folder, &*of_thread));
        Ok(Self {
            machine,
            pipe,
            thread: Some(thread),
        })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.machine.is_on()
    }

    pub(crate) fn set_on(&self, on: bool) -> Result<(), LabError> {
        if on {
            return self.machine.switch_on();
        }
        self.machine.switch_off();
        Ok(())
    }
}

impl Drop for Button {
    fn drop(&mut self) {
        if self.pipe.write_all(END.as_bytes()).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // A panic of the thread is ignored.
            let _ = thread.join();
        }
    }
}

fn serve(asked: BufReader<File>, folder: &Path, machine: &dyn Machine) {
    for line in asked.lines() {
        let Ok(line) = line else { return };
        let Some((verb, number)) = line.split_once(' ') else {
            return;
        };
        let answer = folder.join(format!("answer.{number}"));
        // Without an answer file the BMC reports an error to its client.
        let _ = put(&answer, &carry_out(machine, verb));
    }
}

fn carry_out(machine: &dyn Machine, verb: &str) -> String {
    let done = match verb {
        "1" => machine.switch_on(),
        "0" => {
            machine.switch_off();
            Ok(())
        }
        "reset" => machine.reset(),
        _ => Ok(()),
    };
    match (done, machine.is_on()) {
        (Err(error), _) => error.to_string(),
        (Ok(()), true) => "1".to_owned(),
        (Ok(()), false) => "0".to_owned(),
    }
}

/// Writes a file in one step, so that no reader sees half of it.
fn put(path: &PathBuf, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    std::fs::write(&beside, format!("{text}\n"))?;
    std::fs::rename(beside, path)
}
