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

/// The text in at most so many bytes; three dots stand for the rest.
pub(crate) fn cut_bytes(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(3));
    format!("{}...", &text[..end])
}

/// The text of a field that is left out where there is none: some API servers refuse an empty text.
pub(crate) fn unless_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| cut(text, MESSAGE))
}

#[cfg(test)]
mod tests {
    use super::{cut, cut_bytes};

    #[test]
    fn a_text_that_is_too_long_is_cut_by_characters() {
        assert_eq!(cut("node", 4), "node");
        assert_eq!(cut("nöde n1", 6), "nöd...");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_by_bytes_and_never_within_a_character() {
        assert_eq!(cut_bytes("nöde", 5), "nöde");
        assert_eq!(cut_bytes("nöde n1", 5), "n...");
        assert_eq!(cut_bytes("nöde n1", 6), "nö...");
    }
}
