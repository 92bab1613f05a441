//! A segment as a YAML document, its keys in the order of the documentation.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

use super::keys::{below, keys_at};
use crate::error::CliError;

/// The document of a segment as the API shows it, without what the service alone writes.
pub fn document(segment: &Value) -> Result<String, CliError> {
    let own = |key: &&str| Some(((*key).to_owned(), segment.get(*key)?.clone()));
    let written: Map<String, Value> = keys_at("").iter().filter_map(own).collect();
    let ordered = Ordered {
        field: String::new(),
        value: &Value::Object(written),
    };
    serde_saphyr::to_string(&ordered).map_err(|error| CliError::Answer {
        url: "/segments".to_owned(),
        why: error.to_string(),
    })
}

/// A value of a document, by its path.
struct Ordered<'a> {
    field: String,
    value: &'a Value,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(fields) => {
                let known = keys_at(&self.field);
                let mut pairs: Vec<_> = fields.iter().collect();
                // What a newer service has and this program does not know comes last.
                pairs.sort_by_key(|(key, _)| {
                    known.iter().position(|known| known == key).unwrap_or(known.len())
                });
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                for (key, value) in pairs {
                    let field = below(&self.field, key);
                    map.serialize_entry(key, &Ordered { field, value })?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for (at, value) in items.iter().enumerate() {
                    let field = format!("{}[{at}]", self.field);
                    list.serialize_element(&Ordered { field, value })?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{SegmentDraft, SegmentPolicy};
    use serde_json::json;

    use super::super::document::read;
    use super::*;

    #[test]
    fn a_document_is_read_as_what_was_written() {
        let shown = json!({
            "id": "7", "created_at": "2026-01-31T12:00:00Z", "name": "1e3", "description": "on: \"#1\"\n yes\n",
            "policy": {
                "settle_s": 6, "self_fencing_timeout_s": null,
                "fencing": {"ceph": ["true", "7"], "automatic": true, "after_s": 20},
                "conditions": [{"condition": "Down", "status": "False", "for_s": 0, "action": "fence"}],
                "evacuation": {"spare_hosts": [], "metadata_key": "~", "priority_key": "no"},
            },
        });
        let text = document(&shown).unwrap();
        assert!(text.starts_with("name: "), "{text}");
        let own =
            json!({"name": shown["name"], "description": shown["description"], "policy": shown["policy"]});
        let expected: SegmentDraft = serde_json::from_value(own).unwrap();
        assert_eq!(read(&text).unwrap()[0].segment, expected, "{text}");
    }

    #[test]
    fn what_a_terminal_would_act_on_is_written_as_text() {
        let text =
            document(&json!({"name": "a", "description": "\u{1b}[31mred\r\u{7}", "policy": {}})).unwrap();
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert_eq!(
            read(&text).unwrap()[0].segment.description,
            "\u{1b}[31mred\r\u{7}"
        );
    }

    #[test]
    fn keys_have_the_order_of_the_documentation() {
        let policy = json!(SegmentPolicy::default());
        let text = document(&json!({"name": "a", "description": "", "policy": policy})).unwrap();
        let keys: Vec<_> = text
            .lines()
            .map(|line| line.split(':').next().unwrap().trim())
            .collect();
        assert_eq!(
            keys[..5],
            [
                "name",
                "description",
                "policy",
                "self_fencing_timeout_s",
                "settle_s"
            ]
        );
        assert!(
            text.contains("  fencing:\n    automatic: false\n    after_s: 15\n"),
            "{text}"
        );
    }
}
