//! The progress of an operation, on standard error: a live line per task on a terminal, else a line per change.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::text::{Tone, plain};
use crate::client::view::{Attempt, Operation, Task};

/// More tasks than any plan has.
const MAX_LINES: usize = 32;

/// Shows the progress of an operation.
pub enum Progress {
    /// On a terminal.
    Live(MultiProgress, Vec<ProgressBar>),
    /// Into a file or a pipe; the last text of each line, and what the operation waited for.
    Lines(Vec<String>, String),
    /// Not shown: a program reads the output.
    Silent,
}

impl Progress {
    /// The progress for standard error; `quiet` if a program reads the output.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        match (std::io::stderr().is_terminal(), quiet) {
            (true, _) => Self::Live(MultiProgress::new(), Vec::new()),
            (false, false) => Self::Lines(Vec::new(), String::new()),
            (false, true) => Self::Silent,
        }
    }

    /// Shows the state of the operation.
    pub fn show(&mut self, operation: &Operation) {
        let tasks = operation.tasks().take(MAX_LINES);
        let waits_for = waits_for(operation);
        match self {
            Self::Live(bars, lines) => {
                let mut all: Vec<Line> = tasks.map(Line::from).collect();
                all.extend(waits_for.map(Line::waiting));
                all.iter()
                    .enumerate()
                    .for_each(|(at, line)| live(bars, lines, at, line));
                lines
                    .drain(all.len().min(lines.len())..)
                    .for_each(|bar| bar.finish_and_clear());
            }
            Self::Lines(shown, waited_for) => {
                let lines: Vec<String> = tasks.map(line).collect();
                for text in lines
                    .iter()
                    .enumerate()
                    .filter(|(at, text)| shown.get(*at) != Some(*text))
                    .map(|(_, text)| text)
                {
                    say(text);
                }
                *shown = lines;
                let waits_for = waits_for.unwrap_or_default();
                if !waits_for.is_empty() && waits_for != *waited_for {
                    say(&waits_for);
                }
                *waited_for = waits_for;
            }
            Self::Silent => {}
        }
    }

    /// Prints a line beside the progress.
    pub fn note(&self, text: &str) {
        match self {
            Self::Live(bars, _) => bars.suspend(|| say(text)),
            Self::Lines(..) => say(text),
            Self::Silent => {}
        }
    }
}

impl Drop for Progress {
    /// The last state stays on the screen.
    fn drop(&mut self) {
        if let Self::Live(_, lines) = self {
            lines.iter().for_each(ProgressBar::abandon);
        }
    }
}

fn say(text: &str) {
    anstream::eprintln!("{text}");
}

/// What the operation waits for, unless a task says it.
fn waits_for(operation: &Operation) -> Option<String> {
    let is_running = |task: &Task| task.status == "running";
    let is_told = operation.status != "running" || operation.tasks().any(is_running);
    (!is_told && !operation.detail.is_empty()).then(|| plain(&operation.detail))
}

/// A line on a terminal.
struct Line {
    text: String,
    tone: Tone,
    is_running: bool,
}

impl From<&Task> for Line {
    fn from(task: &Task) -> Self {
        Self {
            text: line(task),
            tone: Tone::of(&task.status),
            is_running: task.status == "running",
        }
    }
}

impl Line {
    fn waiting(text: String) -> Self {
        Self {
            text,
            tone: Tone::Busy,
            is_running: true,
        }
    }
}

fn live(bars: &MultiProgress, lines: &mut Vec<ProgressBar>, at: usize, line: &Line) {
    if at >= lines.len() {
        lines.push(bars.add(ProgressBar::new_spinner()));
    }
    let Some(bar) = lines.get(at) else { return };
    let template = if line.is_running {
        bar.enable_steady_tick(Duration::from_millis(100));
        "{spinner} {wide_msg}"
    } else {
        bar.disable_steady_tick();
        "  {wide_msg}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let style = line.tone.style();
    bar.set_message(format!("{style}{}{style:#}", line.text));
}

/// A task's kind, its status, and why, or what its last attempt does.
#[must_use]
pub fn line(task: &Task) -> String {
    let why = task.detail.clone().filter(|detail| !detail.is_empty());
    let more = why
        .or_else(|| task.attempts.last().map(attempt))
        .unwrap_or_default();
    plain(format!("{:<18} {:<9}  {more}", task.kind, task.status).trim_end())
}

fn attempt(attempt: &Attempt) -> String {
    let how = format!(
        "{} ({}), attempt {}",
        attempt.method, attempt.driver, attempt.number
    );
    let observed = attempt
        .observation
        .as_ref()
        .map(|seen| format!(", seen {}", seen.state))
        .unwrap_or_default();
    let detail = attempt.detail.as_deref().filter(|detail| !detail.is_empty());
    let detail = detail.map(|detail| format!(", {detail}")).unwrap_or_default();
    let state = attempt.outcome.as_deref().unwrap_or(&attempt.status);
    format!("{how}: {state}{observed}{detail}")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_task_is_told_with_its_last_attempt() {
        let task: Task = from_value(json!({
            "kind": "power.off", "status": "running", "detail": null,
            "attempts": [
                {"number": 1, "method": "bmc", "driver": "ipmi", "status": "ended", "outcome": "unknown"},
                {"number": 2, "method": "pdu", "driver": "fence-agent", "status": "ended", "outcome": "refused",
                 "observation": {"state": "on"}, "detail": "outlet\n7 is locked"},
            ],
        }))
        .unwrap();
        let expected = "power.off          running    pdu (fence-agent), attempt 2: refused, seen on, outlet 7 is locked";
        assert_eq!(line(&task), expected);
    }

    #[test]
    fn a_task_that_has_not_begun_is_short() {
        let task: Task = from_value(json!({"kind": "power.on", "status": "pending"})).unwrap();
        assert_eq!(line(&task), "power.on           pending");
    }
}
