//! Lines `key=value`.

use std::collections::BTreeMap;

use ringfence_core::Problems;

/// The values by their keys.
pub(super) type Properties = BTreeMap<String, String>;

/// The most lines of one text.
const MAX_LINES: usize = 256;
/// The longest key, in characters.
const MAX_KEY_CHARS: usize = 64;

/// Reads lines `key=value`. Blank lines, and those that begin with `#`, say nothing. No message repeats a value: it may be a secret.
pub(super) fn read(at: &str, text: &str, problems: &mut Problems) -> Properties {
    let mut found = Properties::new();
    if text.lines().count() > MAX_LINES {
        problems.add(at, format!("has more than {MAX_LINES} lines, which is the most"));
        return found;
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = number + 1;
        let Some((key, value)) = line.split_once('=') else {
            problems.add(at, format!("line {number} has no \"=\"; KEY=VALUE is allowed"));
            continue;
        };
        let key = key.trim();
        if !is_key(key) {
            problems.add(
                at,
                format!("line {number} has no name before \"=\"; 1 to {MAX_KEY_CHARS} letters, digits, '_' and '-' are allowed"),
            );
        } else if found.insert(key.to_owned(), value.trim().to_owned()).is_some() {
            problems.add(
                at,
                format!("line {number} gives {key} again; each key is allowed once"),
            );
        }
    }
    found
}

fn is_key(key: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !key.is_empty() && key.len() <= MAX_KEY_CHARS && key.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_faults_are_told_by_their_line_and_without_a_value() {
        let mut problems = Problems::default();
        let text = "  plug = 2 \n# a comment\n\nurl=http://a?b=c\nhunter2\n=hunter2\nplug=hunter2\n";
        let found = read("fence-method-a", text, &mut problems);
        assert_eq!(found["url"], "http://a?b=c");
        let told: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "fence-method-a: line 5 has no \"=\"; KEY=VALUE is allowed",
                "fence-method-a: line 6 has no name before \"=\"; 1 to 64 letters, digits, '_' and '-' are allowed",
                "fence-method-a: line 7 gives plug again; each key is allowed once",
            ]
        );
    }
}
