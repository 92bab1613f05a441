//! YAML with the place of every key and value.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DuplicateKeyPolicy, Location, MergeKeyPolicy, MessageFormatter, Spanned};

use super::fault::{Fault, Place};

/// Mappings and lists in each other; a segment has 4.
const MAX_DEPTH: usize = 16;
/// Documents of one file, as many as a list of segments has.
const MAX_DOCUMENTS: usize = 1000;

/// A value, and where it begins.
#[derive(Clone, Debug)]
pub struct Node {
    pub at: Place,
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Anything that holds no other value. `plain` is its text where that may be meant: `True` is a truth value, and a word where a word is
    /// wanted.
    Scalar { value: Value, plain: Option<String> },
    /// `[...]`, or lines that begin with `-`.
    List(Vec<Node>),
    /// `{...}`, or lines of `key: value`.
    Mapping(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: String,
    pub at: Place,
    pub value: Node,
}

/// The documents of a text. Empty ones, and those of comments alone, are left out.
pub fn documents(text: &str) -> Result<Vec<Node>, Fault> {
    let mut documents: Vec<Spanned<Raw>> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| fault(&error))?;
    Ok(documents.drain(..).map(|raw| node(raw, text)).collect())
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_anchors: 0,
            max_aliases: 0,
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: MAX_DOCUMENTS,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn fault(error: &serde_saphyr::Error) -> Fault {
    let detail = match error.without_snippet() {
        serde_saphyr::Error::Budget { breach, .. } => over_budget(breach),
        serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("{key:?} is given a second time; each key is allowed once")
        }
        serde_saphyr::Error::MergeKeyNotAllowed { .. } => "merge keys (<<) are not allowed".to_owned(),
        other => {
            let message = serde_saphyr::UserMessageFormatter.format_message(other);
            format!("is not YAML: {}", message.replace('\n', " "))
        }
    };
    Fault {
        at: error.location().map_or(Place::FIRST, |at| place(&at)),
        detail,
    }
}

fn over_budget(breach: &BudgetBreach) -> String {
    match breach {
        BudgetBreach::Anchors { .. } | BudgetBreach::Aliases { .. } => {
            "anchors and aliases (& and *) are not allowed; write the value out".to_owned()
        }
        BudgetBreach::Depth { .. } => format!("is nested deeper than {MAX_DEPTH} levels"),
        BudgetBreach::Documents { .. } => format!("has more than {MAX_DOCUMENTS} documents"),
        _ => "is larger than is allowed".to_owned(),
    }
}

fn place(at: &Location) -> Place {
    Place {
        line: at.line().max(1),
        column: at.column().max(1),
    }
}

fn node(raw: Spanned<Raw>, text: &str) -> Node {
    let kind = match raw.value {
        Raw::Scalar(value) => {
            let span = raw.referenced.span();
            let plain = (!value.is_string()).then(|| source(&span, text)).flatten();
            Kind::Scalar { value, plain }
        }
        Raw::List(items) => Kind::List(items.into_iter().map(|item| node(item, text)).collect()),
        Raw::Mapping(entries) => {
            let entry = |(key, value): (Spanned<String>, Spanned<Raw>)| Entry {
                at: place(&key.referenced),
                key: key.value,
                value: node(value, text),
            };
            Kind::Mapping(entries.into_iter().map(entry).collect())
        }
    };
    Node {
        at: place(&raw.referenced),
        kind,
    }
}

fn source(span: &serde_saphyr::Span, text: &str) -> Option<String> {
    let begin = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    let source = text.get(begin..begin.checked_add(length)?)?.trim();
    (!source.is_empty()).then(|| source.to_owned())
}

impl Node {
    /// The value without its places.
    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar { value, .. } => value.clone(),
            Kind::List(items) => items.iter().map(Self::value).collect(),
            Kind::Mapping(entries) => {
                let pairs = entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.value()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }

    /// Where the field with this path is: a value of its own at its value, a mapping or a list at its key. A field that is not there is where the nearest one
    /// around it is.
    pub fn place_of(&self, field: &str) -> Place {
        let mut found = self.at;
        let mut here = self;
        for step in steps(field) {
            let Some((at, next)) = here.child(step) else {
                return found;
            };
            (found, here) = (at, next);
        }
        found
    }

    /// The value at a path.
    pub fn at_path(&mut self, field: &str) -> Option<&mut Self> {
        steps(field).try_fold(self, |here, step| match (&mut here.kind, step) {
            (Kind::List(items), Step::Index(at)) => items.get_mut(at),
            (Kind::Mapping(entries), Step::Key(key)) => {
                let found = entries.iter_mut().find(|entry| entry.key == key);
                found.map(|entry| &mut entry.value)
            }
            _ => None,
        })
    }

    fn child(&self, step: Step<'_>) -> Option<(Place, &Self)> {
        match (&self.kind, step) {
            (Kind::List(items), Step::Index(at)) => items.get(at).map(|item| (item.at, item)),
            (Kind::Mapping(entries), Step::Key(key)) => {
                let entry = entries.iter().find(|entry| entry.key == key)?;
                let is_single = matches!(entry.value.kind, Kind::Scalar { .. });
                Some((if is_single { entry.value.at } else { entry.at }, &entry.value))
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// `a.b[1]` is the keys `a` and `b` and the index 1.
fn steps(field: &str) -> impl Iterator<Item = Step<'_>> {
    let parts = field.split(['.', '[']).filter(|part| !part.is_empty());
    parts.map(|part| {
        let index = part.strip_suffix(']').and_then(|index| index.parse().ok());
        index.map_or(Step::Key(part), Step::Index)
    })
}

/// A value as it is read, before its parts are given their places.
enum Raw {
    Scalar(Value),
    List(Vec<Spanned<Raw>>),
    Mapping(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfRaw)
    }
}

struct OfRaw;

impl<'de> Visitor<'de> for OfRaw {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Raw, E> {
        serde_json::Number::from_f64(value)
            .map(|number| Raw::Scalar(number.into()))
            .ok_or_else(|| E::custom("the number is too large"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut mapping: A) -> Result<Raw, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = mapping.next_key::<Spanned<String>>()? {
            let value = mapping.next_value()?;
            entries.push((key, value));
        }
        Ok(Raw::Mapping(entries))
    }
}
