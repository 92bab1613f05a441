//! Text of a bounded length.

/// The longest text of a message in an object.
pub(crate) const MESSAGE: usize = 1024;

/// The first characters of a text; three dots stand for the rest.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(3)).collect();
    format!("{kept}...")
}

/// The text of a field that is left out where there is none: some API servers refuse an empty text.
pub(crate) fn unless_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| cut(text, MESSAGE))
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_text_that_is_too_long_is_cut_by_characters() {
        assert_eq!(cut("node", 4), "node");
        assert_eq!(cut("nöde n1", 6), "nöd...");
    }
}
