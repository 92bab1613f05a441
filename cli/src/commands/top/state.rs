//! What the screen shows, and which line is chosen.

use super::feed::{Reading, Wanted};
use super::model::{Need, Site};
use crate::client::view::Operation;
use crate::error::CliError;

/// Which screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Overview,
    Operation,
}

/// What the screen shows.
pub struct State {
    wanted: Wanted,
    pub site: Option<Site>,
    pub operation: Option<Operation>,
    /// Why nothing could be read the last time.
    pub fault: Option<String>,
    /// The chosen line of the overview.
    pub chosen: usize,
    /// The uppermost line of the operation.
    pub scrolled: usize,
}

/// A line that can be chosen.
pub enum Line<'a> {
    Need(&'a Need),
    Operation(&'a Operation),
}

impl State {
    pub fn new(wanted: Wanted) -> Self {
        Self {
            wanted,
            site: None,
            operation: None,
            fault: None,
            chosen: 0,
            scrolled: 0,
        }
    }

    pub fn shown(&self) -> Shown {
        match self.wanted {
            Wanted::Overview => Shown::Overview,
            Wanted::Operation(_) => Shown::Operation,
        }
    }

    /// Takes what was read. What passes by itself is shown; another fault ends the program.
    pub fn take(&mut self, reading: Reading) -> Result<(), CliError> {
        self.fault = None;
        match reading {
            Reading::Site(site) => self.site = Some(*site),
            Reading::Operation(operation) => {
                let is_it = self.wanted == Wanted::Operation(operation.id.clone());
                if is_it {
                    self.operation = Some(*operation);
                }
            }
            Reading::Fault(error)
                if error.is_passing() && (self.site.is_some() || self.operation.is_some()) =>
            {
                self.fault = Some(error.to_string());
            }
            Reading::Fault(error) => return Err(error),
        }
        Ok(())
    }

    /// Moves the chosen line, or the lines of an operation.
    pub fn step(&mut self, by: isize) {
        match self.shown() {
            Shown::Overview => self.chosen = self.chosen.saturating_add_signed(by),
            Shown::Operation => self.scrolled = self.scrolled.saturating_add_signed(by),
        }
    }

    /// Opens the chosen line's operation.
    pub fn open(&mut self) -> Option<Wanted> {
        if self.shown() == Shown::Operation {
            return None;
        }
        let site = self.site.as_ref()?;
        let needs = site.needs();
        let id = match lines(site, &needs).into_iter().nth(self.chosen)? {
            Line::Need(need) => need.operation.clone()?,
            Line::Operation(operation) => operation.id.clone(),
        };
        self.operation = None;
        self.scrolled = 0;
        self.wanted = Wanted::Operation(id);
        Some(self.wanted.clone())
    }

    /// Goes back to the overview.
    pub fn close(&mut self) -> Option<Wanted> {
        self.wanted = Wanted::Overview;
        Some(self.wanted.clone())
    }
}

/// The lines that can be chosen, in their order.
pub fn lines<'a>(site: &'a Site, needs: &'a [Need]) -> Vec<Line<'a>> {
    let needs = needs.iter().map(Line::Need);
    let operations = site.running.iter().chain(&site.held).map(Line::Operation);
    needs.chain(operations).collect()
}
