//! The keys of a segment's document, as the types in `ringfence_core` have them.

use std::fmt;

use ringfence_core::{
    AlarmRule, ConditionRule, EvacuationPolicy, FencingPolicy, GroupRule, MoveLimits, QuarantinePolicy,
    SegmentDraft, SegmentPolicy, SightPolicy,
};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

/// The keys of the mapping at this path, in the order in which they are written; none where there is no mapping.
pub fn keys_at(field: &str) -> &'static [&'static str] {
    match field {
        "" => keys_of::<SegmentDraft>(),
        "policy" => keys_of::<SegmentPolicy>(),
        "policy.quarantine" => keys_of::<QuarantinePolicy>(),
        "policy.fencing" => keys_of::<FencingPolicy>(),
        "policy.fencing.sight" => keys_of::<SightPolicy>(),
        "policy.evacuation" => keys_of::<EvacuationPolicy>(),
        "policy.evacuation.in_segment" | "policy.evacuation.on_platform" => keys_of::<MoveLimits>(),
        rule if rule.starts_with("policy.fencing.groups[") && rule.ends_with(']') => keys_of::<GroupRule>(),
        rule if rule.starts_with("policy.conditions[") && rule.ends_with(']') => keys_of::<ConditionRule>(),
        rule if rule.starts_with("policy.alarms[") && rule.ends_with(']') => keys_of::<AlarmRule>(),
        _ => &[],
    }
}

/// The path of a key of the mapping at `field`.
pub fn below(field: &str, key: &str) -> String {
    if field.is_empty() {
        key.to_owned()
    } else {
        format!("{field}.{key}")
    }
}

fn keys_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    match T::deserialize(Asked) {
        Err(Told(keys)) => keys,
        Ok(_) => &[],
    }
}

/// Reads nothing, and learns which keys a type would read.
struct Asked;

impl<'de> Deserializer<'de> for Asked {
    type Error = Told;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Told> {
        Err(Told(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        keys: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Told> {
        Err(Told(keys))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[derive(Debug)]
struct Told(&'static [&'static str]);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Told {}

impl Error for Told {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{ConditionAction, HostProblem};
    use serde_json::{Value, to_value};

    use super::*;

    fn assert_known(field: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    assert!(keys_at(field).contains(&key.as_str()), "{key} at {field:?}");
                    assert_known(&below(field, key), value);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    assert_known(&format!("{field}[{at}]"), item);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_mapping_of_a_segment_has_its_keys() {
        let rule = ConditionRule {
            condition: "KernelDeadlock".to_owned(),
            status: Default::default(),
            for_s: 0,
            action: ConditionAction::Report,
        };
        let policy = SegmentPolicy {
            quarantine: Some(QuarantinePolicy {
                fences: 3,
                within_s: 60,
            }),
            conditions: vec![rule],
            alarms: vec![AlarmRule {
                problem: HostProblem::Condition,
                condition: Some("KernelDeadlock".to_owned()),
                times: 3,
                within_s: 60,
            }],
            ..SegmentPolicy::default()
        };
        let draft = SegmentDraft {
            name: "a".to_owned(),
            description: String::new(),
            policy,
        };
        assert_known("", &to_value(&draft).unwrap());
        for field in [
            "",
            "policy",
            "policy.quarantine",
            "policy.fencing",
            "policy.evacuation",
            "policy.conditions[0]",
            "policy.alarms[0]",
        ] {
            let whole = draft.whole();
            let pointer = field.replace(['.', '['], "/").replace(']', "");
            let pointer = if field.is_empty() {
                String::new()
            } else {
                format!("/{pointer}")
            };
            let mut written: Vec<&str> = whole
                .pointer(&pointer)
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .map(String::as_str)
                .collect();
            let mut known = keys_at(field).to_vec();
            known.sort_unstable();
            written.sort_unstable();
            assert_eq!(written, known, "{field}");
        }
        assert_eq!(keys_at(""), ["name", "description", "policy"]);
        assert_eq!(keys_at("policy.fencing")[..2], ["automatic", "after_s"]);
    }
}
