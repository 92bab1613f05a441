//! Words for the person at the terminal.

/// Prints a line on stderr, where it does not mix with what a command answers.
#[expect(clippy::print_stderr, reason = "the commands have no other way to speak")]
pub fn say(line: &str) {
    eprintln!("{line}");
}
