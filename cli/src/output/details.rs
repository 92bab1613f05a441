//! One object, a line per property.

use anstyle::{Reset, Style};

use super::text::{Tone, plain};

/// Names and values, aligned.
#[derive(Clone, Debug, Default)]
pub struct Details(Vec<(&'static str, String, Tone)>);

impl Details {
    /// Adds a line.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl AsRef<str>) -> Self {
        self.0.push((name, plain(value.as_ref()), Tone::Plain));
        self
    }

    /// Adds a line with a word of the API and more text after it.
    #[must_use]
    pub fn with_word(mut self, name: &'static str, word: &str, more: impl AsRef<str>) -> Self {
        let value = format!("{word}{}", more.as_ref());
        self.0.push((name, plain(&value), Tone::of(word)));
        self
    }

    /// Adds a line in the tone of a word of the API that the line does not show.
    #[must_use]
    pub fn with_tone(mut self, name: &'static str, word: &str, value: impl AsRef<str>) -> Self {
        self.0.push((name, plain(value.as_ref()), Tone::of(word)));
        self
    }

    /// Adds a line if there is a value.
    #[must_use]
    pub fn with_some(self, name: &'static str, value: Option<impl AsRef<str>>) -> Self {
        match value {
            Some(value) if !value.as_ref().is_empty() => self.with(name, value),
            Some(_) | None => self,
        }
    }

    /// The text; `colour` adds ANSI codes.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let width = self
            .0
            .iter()
            .map(|(name, _, _)| name.len())
            .max()
            .unwrap_or_default();
        let line = |(name, value, tone): &(&str, String, Tone)| {
            let gap = " ".repeat(width - name.len() + 2);
            if colour {
                let (bold, style) = (Style::new().bold(), tone.style());
                format!("{bold}{name}{Reset}{gap}{style}{value}{Reset}\n")
            } else {
                format!("{name}{gap}{value}\n")
            }
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_line_up_and_empty_ones_are_left_out() {
        let details = Details::default()
            .with("name", "c1")
            .with_some("type", None::<&str>)
            .with_word("fencing", "FENCED", " (1)");
        assert_eq!(details.render(false), "name     c1\nfencing  FENCED (1)\n");
        assert!(details.render(true).contains("\x1b[33mFENCED (1)"));
    }
}
