//! One run of an agent: `key=value` lines on its standard input, never an argument, and what its end means.
//!
//! The form of the input and the exit codes are those of the FenceAgentAPI and of its Python library.

use std::path::Path;

use tokio::time::Instant;

use crate::process::{self, Ended, Input, ProcessError, Program};

/// Metadata of the largest agents has about 30 kB.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// What the agents' library prints when it is asked for something that cannot be, whatever the device says.
const DEFINITE: [&str; 4] = [
    "Failed: You have to",
    "Failed: You have entered",
    "Failed: Unrecognised action",
    "Failed: The user does not have the correct privileges",
];

/// What an agent calls on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    On,
    Off,
}

/// The input of one run. It may hold secrets.
pub(super) struct Call(Vec<u8>);

impl Call {
    /// The action is always written: an agent that is not told reboots the host.
    pub(super) fn new<'a>(
        action: &str,
        values: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut input = String::new();
        for (name, value) in values.filter(|(name, _)| *name != "agent") {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(plain) {
                return Err(format!("the name {name:?} cannot be given to a fence agent"));
            }
            if matches!(name, "action" | "option") {
                return Err(format!(
                    "{name} must not be given to a fence agent; the task decides what it does"
                ));
            }
            if value.contains(['\r', '\n', '\0']) {
                return Err(format!(
                    "the value of {name} holds a line break or NUL, which a fence agent would misread"
                ));
            }
            input.push_str(name);
            input.push('=');
            push_value(&mut input, value);
            input.push('\n');
        }
        input.push_str("action=");
        input.push_str(action);
        input.push('\n');
        Ok(Self(input.into_bytes()))
    }

    pub(super) async fn run(self, path: &Path, until: Instant) -> Result<Ended, ProcessError> {
        let program = Program {
            path: path.to_owned(),
            args: Vec::new(),
            env: process::plain_environment(),
            input: Input::Piped(self.0),
            max_output_bytes: MAX_OUTPUT_BYTES,
        };
        process::run(program, until).await
    }
}

/// The library strips blanks and one pair of quotes from a value, which would change some passwords.
fn push_value(input: &mut String, value: &str) {
    let quoted = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
    if quoted || value != value.trim() {
        input.push('"');
        input.push_str(value);
        input.push('"');
    } else {
        input.push_str(value);
    }
}

/// The state that a run of `status` shows. A usage error of Python ends with 2 as well, so that both code and text must say "off".
pub(super) fn read_status(ended: &Ended) -> Option<Power> {
    let mut states = ended
        .stdout
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("Status:"));
    match (states.next(), states.next(), ended.code) {
        (Some("Status: ON"), None, Some(0)) => Some(Power::On),
        (Some("Status: OFF"), None, Some(2)) => Some(Power::Off),
        _ => None,
    }
}

/// Whether the agent failed for a reason that another run would not change.
pub(super) fn is_definite(ended: &Ended) -> bool {
    ended.code != Some(0) && DEFINITE.iter().any(|text| ended.stderr.contains(text))
}

/// What it printed last, errors first.
pub(super) fn words(agent: &str, ended: &Ended) -> String {
    let how = ended.code.map_or_else(
        || "died of a signal".to_owned(),
        |code| format!("ended with {code}"),
    );
    let last = |text: &str| {
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(4)..].join(" ")
    };
    match (last(&ended.stderr), last(&ended.stdout)) {
        (stderr, stdout) if stderr.is_empty() && stdout.is_empty() => {
            format!("{agent} {how} and printed nothing")
        }
        (stderr, stdout) if stderr.is_empty() => format!("{agent} {how}: {stdout}"),
        (stderr, _) => format!("{agent} {how}: {stderr}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(values: &[(&str, &str)]) -> Result<String, String> {
        Call::new("off", values.iter().copied()).map(|call| String::from_utf8(call.0).unwrap())
    }

    fn ended(code: Option<i32>, stdout: &str) -> Ended {
        Ended {
            code,
            stdout: stdout.to_owned(),
            stderr: String::new(),
        }
    }

    #[test]
    fn the_action_is_always_written_and_the_agents_name_never() {
        assert_eq!(
            input(&[("agent", "fence_x"), ("ip", "10.0.0.1")]).unwrap(),
            "ip=10.0.0.1\naction=off\n"
        );
        assert_eq!(input(&[]).unwrap(), "action=off\n");
    }

    #[test]
    fn no_value_can_add_a_line_and_none_can_change_the_action() {
        for value in ["1\naction=on", "1\raction=on", "1\0"] {
            assert!(input(&[("ip", value)]).is_err(), "{value:?}");
        }
        assert!(input(&[("action", "on")]).is_err());
        assert!(input(&[("option", "on")]).is_err());
        assert!(input(&[("ip=1\naction", "on")]).is_err());
    }

    #[test]
    fn the_error_about_a_value_does_not_repeat_it() {
        assert!(
            !input(&[("password", "hunter2\n")])
                .unwrap_err()
                .contains("hunter2")
        );
    }

    #[test]
    fn quotes_and_blanks_of_a_password_survive() {
        let text = input(&[("a", "\"x\""), ("b", " x"), ("c", "x\"y")]).unwrap();
        assert_eq!(text, "a=\"\"x\"\"\nb=\" x\"\nc=x\"y\naction=off\n");
    }

    #[test]
    fn off_needs_both_the_code_and_the_word() {
        assert_eq!(read_status(&ended(Some(2), "Status: OFF\n")), Some(Power::Off));
        assert_eq!(read_status(&ended(Some(0), "Status: ON\n")), Some(Power::On));
        for (code, text) in [
            (Some(2), ""),
            (Some(0), "Status: OFF\n"),
            (Some(1), "Status: OFF\n"),
            (None, "Status: OFF\n"),
            (Some(2), "Status: ON\n"),
            (Some(2), "Status: OFFLINE\n"),
            (Some(2), "Status: ON\nStatus: OFF\n"),
            (Some(2), "Status: UNKNOWN\n"),
        ] {
            assert_eq!(read_status(&ended(code, text)), None, "{code:?} {text:?}");
        }
    }
}
