//! The pages of the documentation, run as scripts: a comment before every block says what to do with it.
//!
//! The comment is an HTML comment, which readers do not see:
//!
//! | comment | the block |
//! |---|---|
//! | `run` | commands for the page's shell. With prompts (`$ `, `# `), the lines after a command are its answer, and are compared ([`Answer`]) |
//! | `run, ends with N` | commands as with `run`, each of which ends with N, not with 0. (An answer that begins with `error:` is from a command that fails.) |
//! | `start NAME until TEXT` | one command that keeps running; the next block begins when the command has printed TEXT |
//! | `file NAME` | the content of a file in the shell's home |
//! | `settings` | a part of a configuration, which `ringfence config check` accepts |
//! | `shown: WHAT` | text that is only shown |
//! | `not run: WHY; PATH...` | commands that cannot run here, and the source files that check them in another way |
//! | `all: ...` | any of these, for every block from here on that has no comment of its own |
//! | `prepare` and lines | commands that the reader does not need: they bring the machine into the state that the page describes |
//!
//! A block without a comment is a complaint, so that every block is checked.

mod answer;
mod blocks;
mod console;
mod links;
mod page;
mod shell;

pub use answer::Answer;
pub use blocks::{Block, Role, read_blocks};
pub use links::dead_links;
pub use page::walk;
pub use shell::Shell;
