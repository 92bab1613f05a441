//! The pages of the documentation, read as scripts: every block says what is to be done with it, and it is done.
//!
//! What a block is stands in an HTML comment before it, which readers do not see:
//!
//! | comment | the block |
//! |---|---|
//! | `run` | commands for the page's shell. With prompts (`$ `, `# `), the lines after a command are its answer, and are compared ([`Answer`]) |
//! | `run, ends with N` | the same, and each command ends with N, not with 0. (An answer that begins with `error:` is from a command that fails.) |
//! | `start NAME until TEXT` | one command that goes on running; the page goes on when it has printed TEXT |
//! | `file NAME` | the content of a file in the shell's home |
//! | `settings` | a part of a configuration, which `ringfence config check` accepts |
//! | `shown: WHAT` | nothing to be done: what is shown |
//! | `not run: WHY; PATH...` | commands that cannot be run here, and the files of the sources that check the same in another way |
//! | `all: ...` | the same for every block from here on that has no comment of its own |
//! | `prepare` and lines | commands that the reader does not need: they bring the world into the state that the page tells of |
//!
//! A block without a comment is a complaint, so that none can escape.

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
