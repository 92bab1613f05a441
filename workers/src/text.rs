//! Texts of devices, made fit for a message and for a person.

/// The longest text of a device that goes into a message, in characters.
const MAX_DETAIL_CHARS: usize = 1000;

/// The text on one line without control characters, cut to length.
pub(crate) fn cut(text: &str) -> String {
    let mut out = String::new();
    let words = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty());
    for (i, word) in words.enumerate() {
        if i > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
    match out.char_indices().nth(MAX_DETAIL_CHARS) {
        Some((end, _)) => out[..end].to_owned(),
        None => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_to_a_thousand_characters() {
        assert_eq!(cut(&"ä".repeat(3000)).chars().count(), MAX_DETAIL_CHARS);
    }

    #[test]
    fn lines_and_control_characters_become_spaces() {
        assert_eq!(cut(" one\r\n two\x1b[31m\tthree\n"), "one two [31m three");
    }
}
