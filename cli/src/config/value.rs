//! One value: parsed from its source, and checked against its kind.

use std::net::SocketAddr;

use ipnet::IpNet;
use serde_json::{Value as Json, json};
use url::Url;

use super::field::Kind;

/// A value as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    /// From an environment variable or a flag: a list has commas, a number is digits.
    Word(String),
    /// A string of the file.
    Text(String),
    /// A whole number of the file.
    Integer(i64),
    /// A list of strings of the file.
    List(Vec<String>),
    /// True or false in the file.
    Flag(bool),
    /// A value of a type that no key has.
    Other(&'static str),
}

/// The value in the form of the settings, or the error with what is allowed.
pub fn check(kind: Kind, raw: &Raw) -> Result<Json, String> {
    match kind {
        Kind::Integer(low, high) => integer(raw, low, high),
        Kind::OffOr(low, high) => off_or_integer(raw, low, high),
        Kind::Flag => flag(raw),
        Kind::Names => list(raw, "a list of names", check_name),
        Kind::Zones => list(raw, "a list of names of zones", check_zone),
        Kind::Pairs => list(raw, "a list of NAME:NAME", check_pair),
        Kind::Networks => list(raw, "a list of networks", check_network),
        Kind::Words(words) => list(raw, "a list of words", |word| check_word(word, words)),
        Kind::Name => text(raw, check_name),
        Kind::NameUpTo(most) => text(raw, |name| check_name_up_to(name, most)),
        Kind::Word(words) => text(raw, |word| check_word(word, words)),
        Kind::Url(schemes) => text(raw, |url| check_url(url, schemes)),
        Kind::Path => text(raw, check_path),
        Kind::Text => text(raw, check_text),
        Kind::Secret => text(raw, check_secret),
        Kind::Scopes => list(raw, "a list of scopes", |scope| {
            scope.parse::<ringfence_api::Scope>().map(drop)
        }),
        Kind::Listen => text(raw, |address| check_listen(address).map(drop)),
        Kind::LogLevel => text(raw, check_level),
    }
}

fn integer(raw: &Raw, low: u64, high: u64) -> Result<Json, String> {
    let allowed = format!("a whole number from {low} to {high} is allowed");
    let number = match raw {
        Raw::Word(word) => word
            .trim()
            .parse()
            .map_err(|_| format!("is {word:?}; {allowed}"))?,
        Raw::Integer(number) => u64::try_from(*number).map_err(|_| format!("is {number}; {allowed}"))?,
        Raw::Text(_) | Raw::List(_) | Raw::Flag(_) | Raw::Other(_) => {
            return Err(format!("is {}; {allowed}", name_of(raw)));
        }
    };
    if (low..=high).contains(&number) {
        Ok(json!(number))
    } else {
        Err(format!("is {number}; {allowed}"))
    }
}

fn off_or_integer(raw: &Raw, low: u64, high: u64) -> Result<Json, String> {
    let is_off = match raw {
        Raw::Word(word) => word.trim() == "0",
        Raw::Integer(number) => *number == 0,
        Raw::Text(_) | Raw::List(_) | Raw::Flag(_) | Raw::Other(_) => false,
    };
    if is_off {
        return Ok(json!(0));
    }
    integer(raw, low, high).map_err(|why| why.replacen("a whole number", "0 (never) or a whole number", 1))
}

fn flag(raw: &Raw) -> Result<Json, String> {
    let allowed = "true or false is allowed";
    match raw {
        Raw::Flag(flag) => Ok(json!(flag)),
        Raw::Word(word) => match word.trim() {
            "true" => Ok(json!(true)),
            "false" => Ok(json!(false)),
            _ => Err(format!("is {word:?}; {allowed}")),
        },
        Raw::Text(_) | Raw::Integer(_) | Raw::List(_) | Raw::Other(_) => {
            Err(format!("is {}; {allowed}", name_of(raw)))
        }
    }
}

fn text(raw: &Raw, check: impl Fn(&str) -> Result<(), String>) -> Result<Json, String> {
    let (Raw::Word(text) | Raw::Text(text)) = raw else {
        return Err(format!("is {}; a string is allowed", name_of(raw)));
    };
    check(text)?;
    Ok(json!(text))
}

fn list(raw: &Raw, wanted: &str, check: impl Fn(&str) -> Result<(), String>) -> Result<Json, String> {
    let items: Vec<String> = match raw {
        Raw::Word(text) => text.split(',').map(|item| item.trim().to_owned()).collect(),
        Raw::List(items) => items.clone(),
        Raw::Text(_) | Raw::Integer(_) | Raw::Flag(_) | Raw::Other(_) => {
            return Err(format!("is {}; {wanted} is allowed", name_of(raw)));
        }
    };
    if items.is_empty() {
        return Err(format!("is empty; {wanted} is needed"));
    }
    items.iter().try_for_each(|item| check(item))?;
    Ok(json!(items))
}

fn name_of(raw: &Raw) -> &'static str {
    match raw {
        Raw::Word(_) | Raw::Text(_) => "a string",
        Raw::Integer(_) => "a number",
        Raw::List(_) => "a list",
        Raw::Flag(_) => "true or false",
        Raw::Other(name) => name,
    }
}

fn check_name(name: &str) -> Result<(), String> {
    ringfence_core::validate_name("", name).map_err(|problem| problem.detail)
}

fn check_zone(zone: &str) -> Result<(), String> {
    ringfence_core::validate_zone("", zone).map_err(|problem| problem.detail)
}

fn check_name_up_to(name: &str, most: usize) -> Result<(), String> {
    if name.len() > most {
        return Err(format!("has {} characters; up to {most} are allowed", name.len()));
    }
    check_name(name)
}

fn check_pair(pair: &str) -> Result<(), String> {
    let (first, second) = pair
        .split_once(':')
        .ok_or_else(|| format!("is {pair:?}; NAME:NAME is allowed"))?;
    check_name(first).and_then(|()| check_name(second))
}

fn check_network(text: &str) -> Result<(), String> {
    text.parse::<IpNet>()
        .map(drop)
        .map_err(|_| format!("is {text:?}; ADDRESS/BITS is allowed, as in 10.0.0.0/8 or fd00::/8"))
}

fn check_word(word: &str, words: &[&str]) -> Result<(), String> {
    let is_known = words.contains(&word);
    if is_known {
        Ok(())
    } else {
        Err(format!("is {word:?}; {} is allowed", words.join(", ")))
    }
}

/// The error does not show the URL, which may hold a password even where it cannot be parsed.
fn check_url(text: &str, schemes: &[&str]) -> Result<(), String> {
    let allowed = format!(
        "a URL that begins with {} is allowed",
        schemes.join(":// or ") + "://"
    );
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    if !scheme.is_some_and(|scheme| schemes.contains(&scheme)) {
        return Err(format!("has another form; {allowed}"));
    }
    Url::parse(text)
        .map(drop)
        .map_err(|error| format!("cannot be read ({error}); {allowed}"))
}

fn check_path(path: &str) -> Result<(), String> {
    let is_usable = !path.is_empty() && !path.chars().any(char::is_control);
    if is_usable {
        Ok(())
    } else {
        Err("is not a path".to_owned())
    }
}

fn check_text(text: &str) -> Result<(), String> {
    let chars = text.chars().count();
    if (1..=255).contains(&chars) && !text.chars().any(char::is_control) {
        Ok(())
    } else {
        Err("is no text of 1 to 255 characters".to_owned())
    }
}

/// The error does not show the value, which may be the secret.
fn check_secret(text: &str) -> Result<(), String> {
    ringfence_core::SecretReference::parse(text).map(drop).map_err(|_| {
        "is no reference to a secret; env:VARIABLE (RINGFENCE_SECRET_...) or file:/absolute/path is allowed".to_owned()
    })
}

fn check_listen(address: &str) -> Result<SocketAddr, String> {
    address
        .parse()
        .map_err(|_| format!("is {address:?}; ADDRESS:PORT is allowed, as in 127.0.0.1:8790 or [::]:8790"))
}

/// A bare word that is no level would be taken for the name of a target, and a misspelt level would log everything.
fn check_level(text: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
    let is_fine = |part: &str| match part.rsplit_once('=') {
        Some((target, level)) => !target.trim().is_empty() && is_level(level.trim()),
        None => is_level(part.trim()),
    };
    if text.split(',').all(is_fine) {
        return Ok(());
    }
    Err(format!(
        "is {text:?}; {} is allowed, and after a comma TARGET=LEVEL",
        LEVELS.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(kind: Kind, text: &str) -> Result<Json, String> {
        check(kind, &Raw::Word(text.to_owned()))
    }

    #[test]
    fn a_number_out_of_range_is_refused_with_the_range() {
        let error = word(Kind::Integer(1, 1000), "0").unwrap_err();
        assert_eq!(error, "is 0; a whole number from 1 to 1000 is allowed");
        assert!(
            check(Kind::Integer(1, 9), &Raw::Integer(-4))
                .unwrap_err()
                .starts_with("is -4;")
        );
        assert!(
            check(Kind::Integer(1, 9), &Raw::Text("4".to_owned()))
                .unwrap_err()
                .starts_with("is a string;")
        );
    }

    #[test]
    fn a_name_that_something_is_added_to_has_a_bound_of_its_own() {
        let kind = Kind::NameUpTo(200);
        assert!(word(kind, &"t".repeat(200)).is_ok());
        assert!(word(kind, &"t".repeat(201)).unwrap_err().contains("up to 200"));
        assert!(word(kind, "a b").is_err());
    }

    #[test]
    fn a_bad_url_is_refused_without_being_shown() {
        for bad in [
            "postgres:/u:hush@h",
            "mysql://u:hush@h",
            "postgres://u:hush@h:99999/x",
        ] {
            let error = word(Kind::Url(&["postgres", "sqlite"]), bad).unwrap_err();
            assert!(
                !error.contains("hush") && error.contains("postgres:// or sqlite://"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_flag_is_true_or_false() {
        assert_eq!(word(Kind::Flag, "true").unwrap(), json!(true));
        assert_eq!(check(Kind::Flag, &Raw::Flag(false)).unwrap(), json!(false));
        assert_eq!(
            word(Kind::Flag, "yes").unwrap_err(),
            "is \"yes\"; true or false is allowed"
        );
        assert!(
            check(Kind::Flag, &Raw::Text("true".to_owned()))
                .unwrap_err()
                .starts_with("is a string;")
        );
    }

    #[test]
    fn a_list_comes_with_commas_or_as_a_list() {
        assert_eq!(word(Kind::Names, "a, b").unwrap(), json!(["a", "b"]));
        let given = Raw::List(vec!["a".to_owned(), "b c".to_owned()]);
        assert!(check(Kind::Names, &given).unwrap_err().contains("b c"));
        let long = word(Kind::Zones, &format!("a,{}", "z".repeat(129))).unwrap_err();
        assert!(long.contains("129") && long.contains("128"), "{long}");
        assert!(
            word(Kind::Words(&["power"]), "power,steam")
                .unwrap_err()
                .contains("steam")
        );
    }

    #[test]
    fn a_pair_is_two_names() {
        assert_eq!(word(Kind::Pairs, "east:rack-1").unwrap(), json!(["east:rack-1"]));
        for bad in ["east", "east:", ":rack", "east:rack:1", "ea st:rack"] {
            let why = word(Kind::Pairs, bad).unwrap_err();
            assert!(why.contains("allowed"), "{bad}: {why}");
        }
    }

    #[test]
    fn a_mistyped_level_is_not_taken_for_a_target() {
        assert!(word(Kind::LogLevel, "info,sqlx=warn").is_ok());
        assert!(word(Kind::LogLevel, "inof").is_err());
        assert!(word(Kind::LogLevel, "sqlx=loud").is_err());
    }
}
