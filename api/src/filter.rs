//! Filters of a listing: `name=h1`, `name=in:h1,h2`, `generation=gte:3`; several of them all hold.
//!
//! The form is that of the API-SIG's guideline: an operator and a colon before the value; a value in double quotes is taken as it is,
//! with `\"`, `\\`, `\n` and `\r` for what cannot stand there.

use std::str::Chars;

use actix_web::web;
use chrono::DateTime;
use ringfence_core::Timestamp;
use ringfence_db::Test;

use crate::ApiError;

/// The most parameters of a query, and the most values of a list.
const MAX_PARAMETERS: usize = 64;
const MAX_VALUES: usize = 100;
/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 255;

/// What a parameter is compared by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operators {
    /// Whether it is equal.
    Same,
    /// Also which is more.
    Order,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    In,
    Nin,
    Neq,
    Gt,
    Gte,
    Lt,
    Lte,
}

impl Operators {
    fn read(self, word: &str) -> Option<Operator> {
        let operator = match word {
            "in" => Operator::In,
            "nin" => Operator::Nin,
            "neq" => Operator::Neq,
            "gt" => Operator::Gt,
            "gte" => Operator::Gte,
            "lt" => Operator::Lt,
            "lte" => Operator::Lte,
            _ => return None,
        };
        let is_order = matches!(
            operator,
            Operator::Gt | Operator::Gte | Operator::Lt | Operator::Lte
        );
        (!is_order || self == Self::Order).then_some(operator)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Same => "in:, nin:, neq:",
            Self::Order => "in:, nin:, neq:, gt:, gte:, lt:, lte:",
        }
    }
}

/// The parameters of a query.
#[derive(Debug)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads a query; a parameter that is not `known` is refused.
    pub fn read(query: &str, known: &[&str]) -> Result<Self, ApiError> {
        let pairs = web::Query::<Vec<(String, String)>>::from_query(query)
            .map_err(|error| ApiError::bad("query", error.to_string()))?
            .into_inner();
        if pairs.len() > MAX_PARAMETERS {
            let detail = format!(
                "has {} parameters; at most {MAX_PARAMETERS} are allowed",
                pairs.len()
            );
            return Err(ApiError::bad("query", detail));
        }
        for (name, _) in &pairs {
            if !known.contains(&name.as_str()) {
                let detail = format!("is not known here; one of {} is allowed", known.join(", "));
                return Err(ApiError::bad(name, detail));
            }
        }
        Ok(Self(pairs))
    }

    fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let named = self.0.iter().filter(move |(given, _)| given == name);
        named.map(|(_, value)| value.as_str())
    }

    /// A parameter that can be given once.
    pub fn once(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.all(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(ApiError::bad(name, "is given more than once; once is allowed"));
        }
        Ok(first)
    }

    /// All tests on a parameter. `read` makes a value of its text, or says what is allowed.
    pub fn tests<T>(
        &self,
        name: &str,
        operators: Operators,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<Test<T>>, ApiError> {
        let tests = self.all(name).map(|text| {
            let bad = |why: String| {
                let words = operators.words();
                ApiError::bad(name, format!("is {text:?}; {why}; the operators are {words}"))
            };
            test(text, operators, &read).map_err(bad)
        });
        tests.collect()
    }
}

/// Names, and ids as text.
pub(crate) fn name(value: &str) -> Result<String, String> {
    let is_name = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    let begins = value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !is_name || !begins || value.len() > MAX_NAME_CHARS {
        return Err(format!(
            "1 to {MAX_NAME_CHARS} letters, digits, '.', '_' and '-', a letter or digit first, are allowed"
        ));
    }
    Ok(value.to_owned())
}

/// Numbers from 0 on.
pub(crate) fn number(value: &str) -> Result<u64, String> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // The databases count with 63 bits.
    let number = value.parse().ok().filter(|n| i64::try_from(*n).is_ok());
    number
        .filter(|_| is_plain)
        .ok_or_else(|| "a number, 0 or more, is allowed".to_owned())
}

/// Moments.
pub(crate) fn time(value: &str) -> Result<Timestamp, String> {
    let at = DateTime::parse_from_rfc3339(value).map(|at| at.to_utc());
    at.map_err(|_| "a time such as 2026-01-31T12:00:00Z is allowed".to_owned())
}

/// Words of a vocabulary.
pub(crate) fn word(all: &[&'static str], value: &str) -> Result<&'static str, String> {
    let known = all.iter().find(|word| **word == value);
    known
        .copied()
        .ok_or_else(|| format!("{} is allowed", all.join(", ")))
}

fn test<T>(
    text: &str,
    operators: Operators,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Test<T>, String> {
    let (operator, rest) = operator(text, operators)?;
    let one = || read(&single(rest)?);
    let many = || {
        let values = list(rest)?;
        values
            .iter()
            .map(|value| read(value))
            .collect::<Result<Vec<T>, _>>()
    };
    Ok(match operator {
        Operator::Is => Test::OneOf(vec![one()?]),
        Operator::Neq => Test::NoneOf(vec![one()?]),
        Operator::In => Test::OneOf(many()?),
        Operator::Nin => Test::NoneOf(many()?),
        Operator::Gt => Test::Above(one()?),
        Operator::Gte => Test::AtLeast(one()?),
        Operator::Lt => Test::Below(one()?),
        Operator::Lte => Test::AtMost(one()?),
    })
}

/// The operator and what follows it. What looks like one and is none is an error, not a value.
fn operator(text: &str, operators: Operators) -> Result<(Operator, &str), String> {
    let Some((word, rest)) = text.split_once(':') else {
        return Ok((Operator::Is, text));
    };
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Ok((Operator::Is, text));
    }
    let operator = operators.read(word);
    operator.map(|operator| (operator, rest)).ok_or_else(|| {
        format!("{word}: is no operator here, and a value that begins so has to be in double quotes")
    })
}

fn single(text: &str) -> Result<String, String> {
    if text.starts_with('"') {
        let mut values = list(text)?;
        return match (values.pop(), values.is_empty()) {
            (Some(value), true) => Ok(value),
            _ => Err("one value is allowed".to_owned()),
        };
    }
    if text.contains(['"', ',']) {
        return Err(
            "a value with a comma or a double quote has to be in double quotes, and several need in:"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

fn list(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    let mut chars = text.chars();
    loop {
        let (value, goes_on) = next_value(&mut chars)?;
        values.push(value);
        if values.len() > MAX_VALUES {
            return Err(format!("at most {MAX_VALUES} values are allowed"));
        }
        if !goes_on {
            return Ok(values);
        }
    }
}

/// The next value of a list, and whether another one follows.
fn next_value(chars: &mut Chars<'_>) -> Result<(String, bool), String> {
    let rest = chars.as_str();
    if let Some(quoted) = rest.strip_prefix('"') {
        *chars = quoted.chars();
        let value = quoted_value(chars)?;
        return match chars.next() {
            None => Ok((value, false)),
            Some(',') => Ok((value, true)),
            Some(_) => Err("after a closing quote nothing but a comma is allowed".to_owned()),
        };
    }
    let (value, after) = rest
        .split_once(',')
        .map_or((rest, None), |(value, after)| (value, Some(after)));
    if value.contains('"') {
        return Err("a value with a double quote has to be in double quotes".to_owned());
    }
    *chars = after.unwrap_or_default().chars();
    Ok((value.to_owned(), after.is_some()))
}

fn quoted_value(chars: &mut Chars<'_>) -> Result<String, String> {
    let mut value = String::new();
    loop {
        match chars.next() {
            Some('"') => return Ok(value),
            Some('\\') => value.push(match chars.next() {
                Some(same @ ('"' | '\\')) => same,
                Some('n') => '\n',
                Some('r') => '\r',
                _ => return Err(r#"after a backslash in quotes ", \, n or r is allowed"#.to_owned()),
            }),
            Some(other) => value.push(other),
            None => return Err("the double quote is not closed".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &str) -> Result<Test<String>, String> {
        test(given, Operators::Order, |value| match value {
            "" => Err("empty".to_owned()),
            text => Ok(text.to_owned()),
        })
    }

    fn one_of(values: &[&str]) -> Test<String> {
        Test::OneOf(values.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn filter_values_are_read_as_in_the_api_guideline() {
        for (given, expected) in [
            ("buzz", one_of(&["buzz"])),
            ("in:buzz,bar", one_of(&["buzz", "bar"])),
            (r#"in:"a,bc",d"#, one_of(&["a,bc", "d"])),
            (r#""a\"b\\c""#, one_of(&[r#"a"b\c"#])),
            (r"a\b", one_of(&[r"a\b"])),
            (r#""gte:""#, one_of(&["gte:"])),
            ("gte", one_of(&["gte"])),
            ("2026-01-01T00:00:00Z", one_of(&["2026-01-01T00:00:00Z"])),
            ("neq:a", Test::NoneOf(vec!["a".to_owned()])),
            ("nin:a,b", Test::NoneOf(vec!["a".to_owned(), "b".to_owned()])),
            ("gt:8", Test::Above("8".to_owned())),
            ("gte:8", Test::AtLeast("8".to_owned())),
            ("lt:8", Test::Below("8".to_owned())),
            ("lte:8", Test::AtMost("8".to_owned())),
        ] {
            assert_eq!(read(given), Ok(expected), "{given}");
        }
    }

    #[test]
    fn invalid_filter_values_are_refused() {
        for given in [
            "", "a,b", "a\"b", "in:", "in:a,", "in:a\"b", "\"a", "\"a\"b", "\"a\",b", r#""\x""#, "like:a",
            "neq:a,b",
        ] {
            assert!(read(given).is_err(), "{given}");
        }
        assert!(test("gt:8", Operators::Same, name).is_err());
        assert!(read(&format!("in:{}", vec!["a"; 101].join(","))).is_err());
    }
}
