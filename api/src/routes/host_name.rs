//! A host's name in a question: the bytes of the body itself, unless they have to be unescaped.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A host's name in a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostName<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for HostName<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Name).map(Self)
    }
}

struct Name;

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a host")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_not_copied() {
        let names: Vec<HostName<'_>> = serde_json::from_str(r#"["plain","esc\u0061ped"]"#).unwrap();
        assert!(matches!(names[0].0, Cow::Borrowed("plain")));
        assert!(matches!(&names[1].0, Cow::Owned(name) if name == "escaped"));
    }
}
