//! Compares the answer that a page shows with what a command printed.

use std::sync::LazyLock;

use regex::Regex;

/// A shown answer.
///
/// - White space is not compared, so that a page may wrap long lines and JSON.
/// - `...` stands for any text, also for none.
/// - The headers of an HTTP answer have no order: they are sorted by name before they are compared, as pages show them.
/// - What is different in every run is not compared: ids, request ids, times, milliseconds, ages, tokens, and the ports of
///   loopback addresses.
///
/// Everything else must be printed, in this order, with nothing between.
pub struct Answer<'a>(&'a str);

/// Patterns of text that is different in every run, and the placeholders for them.
static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "ID",
        ),
        (r"\b[0-9a-f]{32}\b", "ID"),
        (
            r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?( ?UTC|Z)?",
            "TIME",
        ),
        (r"\b\d{2}:\d{2}:\d{2}\.\d{3}Z?", "TIME"),
        (r"\b\d+(\.\d+)? ms\b", "TOOK"),
        (r"\b\d+\.\d+ s\b", "TOOK"),
        (r#""(took_ms|age_s)": ?\d+"#, r#""$1":N"#),
        (r"\brf_[A-Za-z0-9_-]{20,}", "TOKEN"),
        (r"\b127\.0\.0\.1:\d+", "ADDRESS"),
    ]
    .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
    .to_vec()
});

impl<'a> Answer<'a> {
    pub fn new(shown: &'a str) -> Self {
        Self(shown)
    }

    /// Whether the page shows an error of the command.
    pub fn is_an_error(&self) -> bool {
        self.0.lines().any(|line| line.starts_with("error:"))
    }

    /// The first shown part that was not printed in its place, if there is one.
    pub fn missing_from(&self, printed: &str) -> Option<String> {
        let shown = plain(self.0);
        let printed = plain(&with_sorted_headers(printed));
        let mut parts: Vec<&str> = shown.split("...").collect();
        let last = parts.pop().unwrap_or_default();
        let mut rest = printed.as_str();
        for (index, part) in parts.iter().enumerate() {
            let found = if index == 0 {
                rest.starts_with(part).then_some(0)
            } else {
                rest.find(part)
            };
            match found {
                Some(at) => rest = &rest[at + part.len()..],
                None => return Some((*part).to_owned()),
            }
        }
        let is_there = if parts.is_empty() {
            rest == last
        } else {
            rest.ends_with(last)
        };
        (!is_there).then(|| last.to_owned())
    }
}

fn with_sorted_headers(printed: &str) -> String {
    let is_http = printed.starts_with("HTTP/");
    let Some((head, body)) = printed
        .replace('\r', "")
        .split_once("\n\n")
        .filter(|_| is_http)
        .map(own)
    else {
        return printed.to_owned();
    };
    let mut lines: Vec<_> = head.lines().collect();
    lines[1..].sort_unstable();
    format!("{}\n\n{body}", lines.join("\n"))
}

fn own((head, body): (&str, &str)) -> (String, String) {
    (head.to_owned(), body.to_owned())
}

fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, name) in CHANGING.iter() {
        text = pattern.replace_all(&text, *name).into_owned();
    }
    text.retain(|c| !c.is_whitespace());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(shown: &str, printed: &str) -> bool {
        Answer::new(shown).missing_from(printed).is_none()
    }

    #[test]
    fn an_answer_has_to_be_complete() {
        assert!(fits("a b\nc", "a  b\n c\n"));
        assert!(!fits("a b", "a b c"));
        assert!(!fits("b c", "a b c"));
        assert!(!fits("", "something"));
    }

    #[test]
    fn dots_stand_for_anything_between() {
        assert!(fits("a ... c", "a b b c"));
        assert!(fits("a ...", "a"));
        assert!(fits("{\"id\":1, ...}", "{\"id\":1,\"b\":2}"));
        assert!(!fits("a ... c", "a b"));
        assert!(!fits("... x ... y", "y x"));
    }

    #[test]
    fn ids_times_and_ports_are_not_compared_and_words_are() {
        assert!(fits(
            "at 2026-11-21T01:31:42.186777Z on 127.0.0.1:8790",
            "at 2027-01-02T00:00:00Z on 127.0.0.1:43210"
        ));
        assert!(fits(
            "req-86fffba7-a919-46da-8e3c-84d04c04949f",
            "req-00000000-0000-4000-8000-000000000000"
        ));
        assert!(fits(
            "HTTP/1.1 200 OK\n...\na: 1\n...\nb: 2\n...\n{}",
            "HTTP/1.1 200 OK\r\nb: 2\r\nc: 3\r\na: 1\r\n\r\n{}"
        ));
        assert!(fits("(proven by a by x...)", "(proven by a by x, b by y)"));
        assert!(!fits("(proven by a by x, b by y)", "(proven by b by y, a by x)"));
        assert!(!fits("sim-1: FENCED", "sim-1: UNFENCED"));
        assert!(!fits("generation 1", "generation 2"));
    }
}
