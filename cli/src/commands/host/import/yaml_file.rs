//! Hosts as YAML: a list of mappings.

use std::collections::BTreeMap;
use std::fmt;

use ringfence_core::{Labels, Parameters};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::entry::{Entry, FIELDS, Sheet};

/// A mapping, with the keys that are not known.
#[derive(Default)]
struct Node {
    entry: Entry,
    unknown: Vec<String>,
}

/// Reads the whole text. Text that is no list of mappings ends the reading.
pub fn read(text: &str) -> Sheet {
    let mut sheet = Sheet::default();
    let nodes: Vec<Spanned<Node>> = match serde_saphyr::from_str_with_options(text, options()) {
        Ok(nodes) => nodes,
        Err(error) => {
            let line = error.location().map_or(1, |at| at.line());
            let why = error.without_snippet().to_string();
            sheet.complain(line, format!("is no list of hosts: {}", why.replace('\n', " ")));
            return sheet;
        }
    };
    for node in nodes {
        let line = node.referenced.line();
        for key in node.value.unknown {
            let allowed = FIELDS.join(", ");
            sheet.complain(
                line,
                format!("{key:?} is not known; {allowed}, labels and parameters are allowed"),
            );
        }
        sheet.entries.push(Entry {
            line,
            ..node.value.entry
        });
    }
    sheet
}

/// The limits: as large as a file may be; repeated anchors are not expanded beyond that.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 20_000_000,
            max_nodes: 10_000_000,
            max_total_scalar_bytes: 64 * 1024 * 1024,
        },
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfNode)
    }
}

struct OfNode;

impl<'de> Visitor<'de> for OfNode {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a host: name, segment, type, backend, cloud, known_as, zone, labels, parameters")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut node = Node::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "parameters" {
                let given: Option<BTreeMap<String, Parameters>> = map.next_value()?;
                node.entry.parameters = given.unwrap_or_default();
            } else if key == "labels" {
                let given: Option<Labels> = map.next_value()?;
                node.entry.labels = given.unwrap_or_default();
            } else if let Some(field) = FIELDS.into_iter().find(|field| *field == key) {
                let value: Option<String> = map.next_value()?;
                node.entry.put(field, &value.unwrap_or_default());
            } else {
                map.next_value::<IgnoredAny>()?;
                node.unknown.push(key);
            }
        }
        Ok(node)
    }
}
