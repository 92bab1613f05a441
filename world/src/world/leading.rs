//! Processes of which each takes itself for the leader, and the records, which are all that they share.
//!
//! One that was halted goes on after another one has taken the records over. It has its own database, its own queue and its own workers.

use ringfence_core::{Dispatch, Due, HostState, Record, Refusal, Timestamp};

use super::World;

/// The records, and who may write them.
#[derive(Clone, Debug)]
pub struct Leading {
    /// The record of the host, and when it was written.
    pub record: Option<(Record, Timestamp)>,
    /// Which process has written it or taken it over last.
    pub writer: u32,
    /// Which process decides now.
    pub process: u32,
    /// The record as this process knows it.
    pub known: Option<Record>,
    /// The process before, if it goes on.
    pub former: Option<Box<Process>>,
}

/// A process that does not decide now.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its number.
    pub process: u32,
    /// The record as it knows it.
    pub known: Option<Record>,
    /// Its database.
    pub state: HostState,
    /// Its queue.
    pub sent: Vec<Dispatch>,
    /// When it looks at the host by itself.
    pub wake_at: Option<Timestamp>,
}

impl World {
    /// From here on the records are all that lasts.
    pub fn keep_records(&mut self) {
        let known = Record::of(&self.state);
        self.records_kept = Some(Leading {
            record: known.clone().map(|record| (record, self.now)),
            writer: 1,
            process: 1,
            known,
            former: None,
        });
    }

    /// What a process does before a decision of its takes effect.
    pub(super) fn keep(&mut self, state: &HostState, is_claimed: bool) -> Result<(), Refusal> {
        let Some(leading) = &mut self.records_kept else {
            return Ok(());
        };
        let is_own = leading.writer == leading.process;
        match Due::before(leading.known.as_ref(), state, is_claimed) {
            Due::Nothing => Ok(()),
            Due::Own if is_own => Ok(()),
            Due::Written(record) if is_own => {
                leading.known = Some((*record).clone());
                leading.record = Some((*record, self.now));
                Ok(())
            }
            Due::Own | Due::Written(_) => Err(TAKEN_OVER),
        }
    }

    /// The process ends, and another one takes the records over; where none are kept, the record is what the process knew.
    pub fn forget(&mut self) {
        if self.records_kept.is_none() {
            return self.forget_all();
        }
        self.take_over();
        if let Some(leading) = &mut self.records_kept {
            leading.former = None;
        }
    }

    /// Another process takes the records over. The one before is halted, and may go on.
    pub fn take_over(&mut self) {
        let Some(mut leading) = self.records_kept.take() else {
            return;
        };
        let former = Process {
            process: leading.process,
            known: leading.known.take(),
            state: self.state.clone(),
            sent: self.sent.clone(),
            wake_at: self.wake_at,
        };
        leading.process = leading.writer + 1;
        leading.writer = leading.process;
        leading.known = leading.record.as_ref().map(|(record, _)| record.clone());
        leading.former = Some(Box::new(former));
        let record = leading.record.clone();
        self.records_kept = Some(leading);
        self.begin_with(record);
    }

    /// The process before goes on with this. It ends once it hears that it leads no more.
    pub fn as_former(&mut self, goes_on: impl FnOnce(&mut Self) -> Result<(), Refusal>) {
        let former = self
            .records_kept
            .as_mut()
            .and_then(|leading| leading.former.take());
        let Some(mut former) = former else { return };
        // What it is told is told to nothing that answers.
        let told_at = self.told_at;
        self.change_places(&mut former);
        let went = goes_on(self);
        self.change_places(&mut former);
        self.told_at = told_at;
        if let Some(leading) = self.records_kept.as_mut().filter(|_| went != Err(TAKEN_OVER)) {
            leading.former = Some(former);
        }
        self.settle();
    }

    fn change_places(&mut self, other: &mut Process) {
        if let Some(leading) = &mut self.records_kept {
            std::mem::swap(&mut leading.process, &mut other.process);
            std::mem::swap(&mut leading.known, &mut other.known);
        }
        std::mem::swap(&mut self.state, &mut other.state);
        std::mem::swap(&mut self.sent, &mut other.sent);
        std::mem::swap(&mut self.wake_at, &mut other.wake_at);
    }

    /// Whether answers of the process that decides now go out: it asks whether it leads before one that opens something.
    pub(crate) fn is_led(&self) -> bool {
        let led = self.records_kept.as_ref();
        led.is_none_or(|leading| leading.writer == leading.process)
    }
}

/// Another process has taken the records over.
const TAKEN_OVER: Refusal = Refusal::HostState("kept by another process");
