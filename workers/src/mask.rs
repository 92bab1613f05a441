//! Texts of devices and agents, without the secrets that they repeat.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// What stands in a text in place of a secret.
pub(crate) const MASK: &str = "[secret]";
/// The shortest piece of Base64 that is looked for: three characters of any text could look like a piece of a short secret.
const MIN_BASE64_CHARS: usize = 4;
/// Before the credentials in a header of basic authentication.
const BASIC: &str = "basic ";

/// The text without the secrets: as they are, in Base64 within whatever stands around them, percent-encoded, or with backslashes before
/// some of their characters. The credentials of basic authentication are left out whosever they are.
pub(crate) fn mask<'a>(text: &str, secrets: impl Iterator<Item = &'a str>) -> String {
    let mut found = credentials(text);
    for secret in secrets.filter(|secret| !secret.is_empty()) {
        found.extend(text.match_indices(secret).map(|(at, found)| at..at + found.len()));
        found.extend(escaped(text, secret.as_bytes()));
        let pieces = base64_pieces(secret.as_bytes());
        let in_base64 = pieces.flat_map(|piece| escaped(text, piece.as_bytes()));
        found.extend(in_base64.map(|piece| whole_token(text, piece)));
    }
    found.sort_by_key(|range| range.start);
    replace(text, &found)
}

fn replace(text: &str, found: &[Range<usize>]) -> String {
    let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
    for range in found {
        if range.start >= end {
            masked.push_str(text.get(end..range.start).unwrap_or_default());
            masked.push_str(MASK);
        }
        end = end.max(range.end);
    }
    masked.push_str(text.get(end..).unwrap_or_default());
    masked
}

/// Where the text holds these bytes, each as it is or escaped.
fn escaped(text: &str, wanted: &[u8]) -> Vec<Range<usize>> {
    let (text, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < text.len() {
        match wanted.iter().try_fold(at, |at, byte| after(text, at, *byte)) {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// Behind the byte, if it stands here.
fn after(text: &[u8], at: usize, wanted: u8) -> Option<usize> {
    match *text.get(at)? {
        b'%' if percent_encoded(text, at) == Some(wanted) => Some(at + 3),
        b'\\' if text.get(at + 1) == Some(&wanted) => Some(at + 2),
        b'+' if wanted == b' ' => Some(at + 1),
        byte => (byte == wanted).then_some(at + 1),
    }
}

fn percent_encoded(text: &[u8], at: usize) -> Option<u8> {
    let digits = std::str::from_utf8(text.get(at + 1..at + 3)?).ok()?;
    u8::from_str_radix(digits, 16).ok()
}

/// The characters of Base64 that these bytes alone tell, after 0, 1 or 2 other bytes: one of them is in the Base64 of any text that
/// holds the bytes.
fn base64_pieces(bytes: &[u8]) -> impl Iterator<Item = String> {
    (0..3_usize).flat_map(move |before| {
        let padded = [&[0; 2][..before], bytes].concat();
        let told = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
        let piece = move |encoded: String| encoded.get(told.clone()).map(ToOwned::to_owned);
        let both = [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)];
        let pieces = both.into_iter().filter_map(piece);
        pieces.filter(|piece| piece.len() >= MIN_BASE64_CHARS)
    })
}

/// What was encoded together with a piece.
fn whole_token(text: &str, piece: Range<usize>) -> Range<usize> {
    let before = text.get(..piece.start).unwrap_or_default();
    let behind = text.get(piece.end..).unwrap_or_default();
    let start = before.trim_end_matches(is_base64).len();
    let rest = behind.trim_start_matches(is_base64).len();
    start..text.len() - rest
}

fn is_base64(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '=' | '%')
}

/// The credentials of basic authentication: Base64 with a colon in it, behind that word.
fn credentials(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let behind = lower.match_indices(BASIC).map(|(at, word)| at + word.len());
    let tokens = behind.map(|start| whole_token(text, start..start));
    tokens
        .filter(|token| is_credentials(text.get(token.clone()).unwrap_or_default()))
        .collect()
}

fn is_credentials(token: &str) -> bool {
    let token = token.trim_end_matches('=');
    let decoded = STANDARD_NO_PAD
        .decode(token)
        .or_else(|_| URL_SAFE_NO_PAD.decode(token));
    decoded.is_ok_and(|decoded| decoded.contains(&b':'))
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};

    use super::*;

    const SECRET: &str = "p ss/w:rd?%é\"1";

    fn masked(text: &str) -> String {
        mask(text, [SECRET].into_iter())
    }

    #[test]
    fn a_secret_within_another_leaves_no_piece_of_it() {
        let masked = mask("got password1, then pass", ["pass", "password1"].into_iter());
        assert_eq!(masked, "got [secret], then [secret]");
    }

    #[test]
    fn a_secret_in_base64_is_masked_with_all_that_was_encoded_with_it() {
        for before in ["", "a", "ab", "abc", "admin:"] {
            for behind in ["", "x", "xy", "xyz"] {
                let text = format!("{before}{SECRET}{behind}");
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    assert_eq!(
                        masked(&format!("got {encoded}, then")),
                        "got [secret], then",
                        "{text}"
                    );
                }
            }
        }
    }

    #[test]
    fn credentials_of_basic_authentication_are_masked_whosever_they_are() {
        let header = format!("> authorization: Basic {}\r\n", STANDARD.encode("root:calvin"));
        assert_eq!(masked(&header), "> authorization: Basic [secret]\r\n");
        let no_credentials = "basic authentication failed; Basic realm=\"BMC\"";
        assert_eq!(masked(no_credentials), no_credentials);
    }

    #[test]
    fn a_secret_is_masked_however_a_url_or_a_string_writes_it() {
        for text in [
            "p%20ss%2Fw%3Ard%3F%25%C3%A9%221",
            "p+ss%2fw%3ard%3f%25%c3%a9%221",
            "p%20ss/w:rd%3F%25é%221",
            "p ss/w:rd?%é\\\"1",
            "p ss\\/w:rd?%é\\\"1",
        ] {
            assert_eq!(masked(&format!("<{text}>")), "<[secret]>", "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_a_secret_stays() {
        let text = "Status: OFF, 100 % of p+ss; naïve \\ %zz %";
        assert_eq!(masked(text), text);
    }
}
