//! Runs a page.

use std::path::{Path, PathBuf};

use super::console::steps;
use super::{Answer, Block, Role, Shell, read_blocks};

/// Runs the page's blocks in order, and panics with every difference between the page and the program.
pub fn walk(page: &str, shell: &mut Shell) {
    let text = std::fs::read_to_string(source(page)).unwrap();
    let (blocks, mut complaints) = read_blocks(&text);
    assert!(!blocks.is_empty(), "{page} has nothing to run");
    for block in &blocks {
        complaints.extend(carry_out(block, shell));
        if shell.is_stuck() {
            break;
        }
    }
    assert!(
        complaints.is_empty(),
        "{page} differs from the program:\n\n{}",
        complaints.join("\n\n")
    );
}

/// A path of the source tree.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

fn carry_out(block: &Block, shell: &mut Shell) -> Vec<String> {
    let line = block.line;
    match &block.role {
        Role::Run { code } => run(block, *code, shell),
        Role::Prepare => {
            let (printed, code) = shell.run(&block.text);
            shell.learn(&printed);
            complain_unless(code == Some(0), || {
                format!("line {line}: the preparation ended with {code:?}:\n{printed}")
            })
        }
        Role::Start { name, until } => match shell.start(name, &block.text, until) {
            Ok(()) => Vec::new(),
            Err(printed) => vec![format!(
                "line {line}: the command did not print {until:?}; it printed:\n{printed}"
            )],
        },
        Role::File { name } => {
            let path = shell.home().join(shell.real(name));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, shell.real(&block.text)).unwrap();
            Vec::new()
        }
        Role::Settings => {
            std::fs::write(shell.home().join(".settings.toml"), &block.text).unwrap();
            let (printed, code) = shell.run("ringfence config check --config ~/.settings.toml\n");
            complain_unless(code == Some(0), || format!("line {line}: {printed}"))
        }
        Role::Shown => complain_unless(steps(&block.text).iter().all(|step| step.shown.is_none()), || {
            format!("line {line}: this block is `shown`, but has commands; use `run`")
        }),
        Role::NotRun { checked_by } => {
            let is_there = |path: &String| source(path).exists();
            complain_unless(!checked_by.is_empty() && checked_by.iter().all(is_there), || {
                format!("line {line}: a file of {checked_by:?}, which check this block, does not exist")
            })
        }
    }
}

fn complain_unless(is_so: bool, why: impl FnOnce() -> String) -> Vec<String> {
    if is_so { Vec::new() } else { vec![why()] }
}

fn run(block: &Block, expected: Option<i32>, shell: &mut Shell) -> Vec<String> {
    let mut complaints = Vec::new();
    for step in steps(&block.text) {
        let line = block.line + step.at;
        let (printed, code) = shell.run(&step.command);
        let shown = step.shown.as_deref();
        let fails = shown.is_some_and(|shown| Answer::new(shown).is_an_error());
        let ended_well = match expected {
            Some(expected) => code == Some(expected),
            None => code.is_some_and(|code| (code != 0) == fails),
        };
        let missing = shown.and_then(|shown| Answer::new(shown).missing_from(&printed));
        if !ended_well || missing.is_some() {
            let missing = missing
                .map(|part| format!("\n-- not there: {part}"))
                .unwrap_or_default();
            complaints.push(format!(
                "line {line}: {}-- ended with {code:?}, and printed:\n{printed}{missing}",
                step.command
            ));
        }
        if shell.is_stuck() {
            break;
        }
    }
    complaints
}
