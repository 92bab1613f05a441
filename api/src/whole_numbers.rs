//! Whole numbers as JSON has them.
//!
//! To JSON, and so to the description of the API, `3.0` and `3e2` are whole numbers. The types that bodies are read as know them as `3`
//! and `300` only.

use std::borrow::Cow;

/// From here on, numbers that are read as floating point are not exact (2^53): this one may have been the next.
const MOST: f64 = 9_007_199_254_740_992.0;

/// The text with every whole number written as one; `None` where that changes nothing. What is no JSON stays as wrong as it is.
pub(crate) fn as_integers(json: &[u8]) -> Option<Vec<u8>> {
    let mut written = Vec::with_capacity(json.len());
    let mut is_changed = false;
    let mut rest = json;
    while let Some(first) = rest.first() {
        let length = match first {
            b'"' => string_length(rest),
            b'-' | b'0'..=b'9' => number_length(rest),
            _ => 1,
        };
        let (token, after) = rest.split_at(length);
        let whole = as_integer(token);
        is_changed |= matches!(whole, Cow::Owned(_));
        written.extend_from_slice(&whole);
        rest = after;
    }
    is_changed.then_some(written)
}

/// Of the string that begins here, with its quotation marks; of all there is if it does not end.
fn string_length(json: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in json.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

fn number_length(json: &[u8]) -> usize {
    let is_in_it = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
    json.iter().take_while(is_in_it).count()
}

fn as_integer(token: &[u8]) -> Cow<'_, [u8]> {
    let is_floating =
        token.first() != Some(&b'"') && token.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    let number: Option<f64> = is_floating.then(|| serde_json::from_slice(token).ok()).flatten();
    match number {
        Some(number) if number.fract() == 0.0 && number.abs() < MOST => {
            format!("{number:.0}").into_bytes().into()
        }
        _ => token.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::as_integers;

    #[test]
    fn only_whole_numbers_lose_their_fraction() {
        for (json, expected) in [
            (r#"{"a":3605.0,"b":[3e2,-1.0]}"#, r#"{"a":3605,"b":[300,-1]}"#),
            (r#"{"a\"1.0":"2.0","b":2.0}"#, r#"{"a\"1.0":"2.0","b":2}"#),
            ("1.0", "1"),
            (r#"{"a":1.5,"a":2.0,"#, r#"{"a":1.5,"a":2,"#),
        ] {
            let written = as_integers(json.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
    }

    #[test]
    fn json_without_fractions_is_not_changed() {
        for json in [
            r#"{"a":1.5,"b":12,"c":"1.0"}"#,
            "1e300",
            "9007199254740993.5",
            "9007199254740993.0",
            "true",
            r#""1.0"#,
            "1.0.0",
            "--1.0",
            "",
        ] {
            assert_eq!(as_integers(json.as_bytes()), None, "{json}");
        }
    }
}
