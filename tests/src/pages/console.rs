//! Commands and their answers.

use std::process::{Command, Stdio};

/// A command, and the answer that the page shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Line number, counted from the block's first line.
    pub at: usize,
    pub command: String,
    /// `None` where the page shows no answer: then the output is not compared.
    pub shown: Option<String>,
}

/// The steps of a block: one for each prompt, or the whole block where it has no prompts.
pub(super) fn steps(text: &str) -> Vec<Step> {
    if !text.lines().any(|line| prompted(line).is_some()) {
        return vec![Step {
            at: 0,
            command: text.to_owned(),
            shown: None,
        }];
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        match (prompted(line), steps.last_mut()) {
            (_, Some(step)) if is_open => {
                step.command.push_str(line);
                step.command.push('\n');
                is_open = is_incomplete(&step.command);
            }
            (Some(command), _) => {
                let command = format!("{command}\n");
                is_open = is_incomplete(&command);
                steps.push(Step {
                    at,
                    command,
                    shown: None,
                });
            }
            (None, Some(step)) => {
                let shown = step.shown.get_or_insert_default();
                shown.push_str(line);
                shown.push('\n');
            }
            (None, None) => steps.push(Step {
                at,
                command: String::new(),
                shown: Some(format!("{line}\n")),
            }),
        }
    }
    steps
}

fn prompted(line: &str) -> Option<&str> {
    line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "))
}

/// Whether the shell needs more lines: for an open quote, a here-document or a continued line.
fn is_incomplete(command: &str) -> bool {
    if command.trim_end().ends_with('\\') {
        return true;
    }
    let read = Command::new("bash")
        .args(["-n", "-c", command])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    said.contains("unexpected EOF")
        || said.contains("unexpected end of file")
        || said.contains("delimited by end-of-file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_continues_until_the_shell_can_run_it() {
        let text = "$ a 'x\n  y' \\\n  z\nshown\n$ cat <<'END'\n$ not a prompt\nEND\n$ b\n";
        let found = steps(text);
        let commands: Vec<_> = found.iter().map(|step| step.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "a 'x\n  y' \\\n  z\n",
                "cat <<'END'\n$ not a prompt\nEND\n",
                "b\n"
            ]
        );
        assert_eq!(found[0].shown.as_deref(), Some("shown\n"));
        assert_eq!(found[2].shown, None);
        assert_eq!(found[1].at, 4);
    }

    #[test]
    fn a_block_without_prompts_is_one_script() {
        let found = steps("a\n\nb\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].shown, None);
    }
}
