//! Messages for the person at the terminal.

/// Prints a line on stderr, so that stdout has only the answer of a command.
#[expect(clippy::print_stderr, reason = "the commands print their messages on stderr")]
pub fn say(line: &str) {
    eprintln!("{line}");
}
