//! What differs between two versions of a piece of configuration, field by field.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Where: a path such as `policy.fencing.at_most`, in the form of [`Problem::field`](crate::Problem::field).
    pub field: String,
    /// The value before; `null` where there was none.
    pub from: Value,
    /// The value after; `null` where there is none.
    pub to: Value,
}

/// The fields in which `after` differs from `before`, in the order of their paths. An object or a list that is new or gone is one field.
#[must_use]
pub fn field_changes(before: &Value, after: &Value) -> Vec<FieldChange> {
    let mut found = Vec::new();
    compare(String::new(), before, after, &mut found);
    found
}

fn compare(field: String, before: &Value, after: &Value, found: &mut Vec<FieldChange>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let path = if field.is_empty() {
                    key.clone()
                } else {
                    format!("{field}.{key}")
                };
                compare(path, &before[key], &after[key], found);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for at in 0..old.len().max(new.len()) {
                compare(format!("{field}[{at}]"), &before[at], &after[at], found);
            }
        }
        (old, new) if old == new => {}
        (old, new) => found.push(FieldChange {
            field,
            from: old.clone(),
            to: new.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(before: &Value, after: &Value) -> Vec<String> {
        let changes = field_changes(before, after).into_iter();
        changes
            .map(|change| format!("{}: {} -> {}", change.field, change.from, change.to))
            .collect()
    }

    #[test]
    fn each_field_that_differs_is_named_by_its_path() {
        let before =
            json!({"name": "a", "policy": {"fencing": {"at_most": 5, "ceph": ["x"]}, "restarts": 0}});
        let after = json!({"name": "a", "policy": {"fencing": {"at_most": 3, "at_once": 2, "ceph": ["y", "z"]}, "restarts": 0}});
        let expected = [
            "policy.fencing.at_most: 5 -> 3",
            "policy.fencing.at_once: null -> 2",
            "policy.fencing.ceph[0]: \"x\" -> \"y\"",
            "policy.fencing.ceph[1]: null -> \"z\"",
        ];
        assert_eq!(lines(&before, &after), expected);
        assert_eq!(lines(&after, &after), Vec::<String>::new());
    }

    #[test]
    fn an_object_that_is_new_or_gone_is_one_field() {
        let with = json!({"quarantine": {"fences": 3, "within_s": 60}});
        let without = json!({"quarantine": null});
        assert_eq!(
            lines(&without, &with),
            ["quarantine: null -> {\"fences\":3,\"within_s\":60}"]
        );
        assert_eq!(
            lines(&with, &json!({})),
            ["quarantine: {\"fences\":3,\"within_s\":60} -> null"]
        );
    }
}
