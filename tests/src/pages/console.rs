//! Commands and their answers.

use std::process::{Command, Stdio};

/// A command, and the answer that the page shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// From the beginning of the block, in lines.
    pub at: usize,
    pub command: String,
    /// `None` where the page shows none: then it is not compared.
    pub shown: Option<String>,
}

/// The steps of a block: with prompts one for each, otherwise the block as a whole.
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

/// Whether the shell waits for more: a quote, a here-document or a line that goes on.
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
    fn a_command_goes_on_until_the_shell_has_enough() {
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
    fn without_prompts_all_of_it_is_one_script() {
        let found = steps("a\n\nb\n");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].shown, None);
    }
}
