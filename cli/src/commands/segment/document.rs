//! Documents of segments: each is a whole segment, and what it leaves out takes its default. Every fault is told with its line and column.

use ringfence_core::{Problem, Problems, SegmentDraft};
use serde_json::Value;

use super::fault::Fault;
use super::keys::{below, keys_at};
use super::tree::{Entry, Kind, Node, documents};
use crate::config::nearest;

/// Faults of one document that are told; more would hide the first.
const MAX_FAULTS: usize = 20;
/// The longest value that a fault repeats, in characters.
const MAX_VALUE_CHARS: usize = 60;

/// A segment, and where each of its fields is.
#[derive(Debug)]
pub struct Document {
    pub segment: SegmentDraft,
    tree: Node,
}

impl Document {
    /// What the service says of a request with this document. A detail that begins with no field is at the beginning.
    pub fn fault_of_service(&self, detail: &str) -> Fault {
        let (field, _) = detail.split_once(": ").unwrap_or_default();
        Fault {
            at: self.tree.place_of(field),
            detail: detail.to_owned(),
        }
    }
}

fn fault(tree: &Node, problem: &Problem) -> Fault {
    Fault {
        at: tree.place_of(&problem.field),
        detail: problem.to_string(),
    }
}

/// Reads the documents of a text. Nothing is returned of a text with a fault.
pub fn read(text: &str) -> Result<Vec<Document>, Vec<Fault>> {
    let trees = documents(text).map_err(|fault| vec![fault])?;
    let mut found: Vec<Document> = Vec::new();
    let mut faults = Vec::new();
    for tree in trees {
        let place = tree.place_of("name");
        match document(tree) {
            Err(more) => faults.extend(more),
            Ok(document)
                if found
                    .iter()
                    .any(|other| other.segment.name == document.segment.name) =>
            {
                let detail = format!(
                    "name: is {:?}, as in a document before; each segment is allowed once",
                    document.segment.name
                );
                faults.push(Fault { at: place, detail });
            }
            Ok(document) => found.push(document),
        }
    }
    faults.sort_by_key(|fault| fault.at);
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

fn document(tree: Node) -> Result<Document, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut known = tree.clone();
    take_unknown(&mut known, "", &mut faults);
    let segment = segment(known, &mut faults);
    if let Some(Err(Problems(problems))) = segment.as_ref().map(SegmentDraft::validate) {
        faults.extend(problems.iter().map(|problem| fault(&tree, problem)));
    }
    faults.truncate(MAX_FAULTS);
    match segment {
        Some(segment) if faults.is_empty() => Ok(Document { segment, tree }),
        _ => Err(faults),
    }
}

/// Takes the keys away that a segment does not have.
fn take_unknown(node: &mut Node, field: &str, faults: &mut Vec<Fault>) {
    match &mut node.kind {
        Kind::Mapping(entries) => {
            let keys = keys_at(field);
            entries.retain(|entry| {
                let is_known = keys.is_empty() || keys.contains(&entry.key.as_str());
                if !is_known {
                    faults.push(unknown(entry, field, keys));
                }
                is_known
            });
            for entry in entries {
                take_unknown(&mut entry.value, &below(field, &entry.key), faults);
            }
        }
        Kind::List(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                take_unknown(item, &format!("{field}[{at}]"), faults);
            }
        }
        Kind::Scalar { .. } => {}
    }
}

fn unknown(entry: &Entry, field: &str, keys: &[&str]) -> Fault {
    let nearest = nearest(&entry.key, keys.iter().copied());
    let allowed = keys.join(", ");
    Fault {
        at: entry.at,
        detail: format!(
            "{}: is not known; the nearest key is {nearest}, and {allowed} are allowed",
            below(field, &entry.key)
        ),
    }
}

/// Reads the fields, and goes on without those that cannot be read. `None` where what is left is no segment.
fn segment(mut tree: Node, faults: &mut Vec<Fault>) -> Option<SegmentDraft> {
    let mut is_whole = true;
    while faults.len() < MAX_FAULTS {
        let error = match serde_path_to_error::deserialize(tree.value()) {
            Ok(segment) => return Some(segment),
            Err(error) => error,
        };
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        let why = error.into_inner().to_string();
        if let Some(missing) = why.strip_prefix("missing field ") {
            if is_whole {
                let missing = below(&field, missing.trim_matches('`'));
                faults.push(fault(&tree, &Problem::new(missing, "is missing")));
            }
            return None;
        }
        if wants_a_word(&why) && is_word(&mut tree, &field) {
            continue;
        }
        let value = tree.at_path(&field).map_or(Value::Null, |node| node.value());
        let detail = format!("is {}; {}", short(&value), allowed(&why));
        faults.push(fault(&tree, &Problem::new(field_or_document(&field), detail)));
        is_whole = false;
        if !take(&mut tree, &field) {
            return None;
        }
    }
    None
}

fn field_or_document(field: &str) -> &str {
    if field.is_empty() { "the document" } else { field }
}

fn wants_a_word(why: &str) -> bool {
    why.ends_with("expected a string") || why.contains("expected one of ")
}

/// Has a plain `True` or `7` mean its text. Says whether it can.
fn is_word(tree: &mut Node, field: &str) -> bool {
    let Some(Node {
        kind: Kind::Scalar { value, plain },
        ..
    }) = tree.at_path(field)
    else {
        return false;
    };
    let is_one = value.is_boolean() || value.is_number();
    match plain.take().filter(|_| is_one) {
        Some(text) => {
            *value = text.into();
            true
        }
        None => false,
    }
}

/// Takes a key away; an item of a list stays, since it would change the places of those behind it.
fn take(tree: &mut Node, field: &str) -> bool {
    let (parent, key) = field.rsplit_once('.').unwrap_or(("", field));
    let Some(Node {
        kind: Kind::Mapping(entries),
        ..
    }) = tree.at_path(parent)
    else {
        return false;
    };
    let before = entries.len();
    entries.retain(|entry| entry.key != key);
    entries.len() < before
}

/// What may stand where something else stands, of the words of `serde`.
fn allowed(why: &str) -> String {
    let expected = why.rsplit_once("expected ").map_or(why, |(_, expected)| expected);
    let expected = match expected {
        "u32" => "a whole number, 0 or more,",
        "a boolean" => "true or false",
        "a string" => "text",
        "a sequence" => "a list",
        mapping if mapping.starts_with("struct ") => "a mapping of keys and values",
        words => words,
    };
    format!("{} is allowed", expected.replace('`', ""))
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => "empty".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{ConditionStatus, SegmentPolicy};

    use super::*;

    fn faults(text: &str) -> Vec<String> {
        read(text).unwrap_err().iter().map(ToString::to_string).collect()
    }

    fn one(text: &str) -> SegmentDraft {
        let mut found = read(text).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0).segment
    }

    #[test]
    fn what_a_document_leaves_out_takes_its_default() {
        let segment = one("name: rack-1\n");
        assert_eq!(segment.policy, SegmentPolicy::default());
        let segment = one("# a rack\nname: rack-1\npolicy:\n  fencing:\n    at_most: 3\n");
        assert_eq!(segment.policy.fencing.at_most, 3);
        assert!(!segment.policy.fencing.automatic);
    }

    #[test]
    fn a_value_out_of_range_is_told_at_its_place() {
        let text = "name: rack-1\npolicy:\n  settle_s: 601\n  fencing: {automatic: true, at_most: 0}\n";
        let expected = [
            "3:13: policy.settle_s: is 601; 0 to 600 is allowed",
            "4:39: policy.fencing.at_most: is 0; 1 to 10000 is allowed",
        ];
        assert_eq!(faults(text), expected);
    }

    #[test]
    fn an_item_of_a_list_is_told_at_its_place() {
        let text = "\
name: rack-1
policy:
  conditions:
    - condition: KernelDeadlock
    - condition: KernelDeadlock
      for_s: 90000
";
        let expected = [
            "5:7: policy.conditions[1]: is the second rule for KernelDeadlock True; the first is conditions[0]",
            "6:14: policy.conditions[1].for_s: is 90000; 0 to 86400 is allowed",
        ];
        assert_eq!(faults(text), expected);
    }

    #[test]
    fn an_unknown_key_is_told_with_the_nearest_known_one() {
        let found = faults("name: rack-1\npolicy:\n  fencing:\n    at_mots: 3\n  restart: 1\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with(
            "4:5: policy.fencing.at_mots: is not known; the nearest key is at_most, and automatic, after_s, "
        ));
        assert!(found[1].starts_with("5:3: policy.restart: is not known; the nearest key is restarts, and "));
    }

    #[test]
    fn a_value_of_another_type_is_told_with_what_is_allowed() {
        let text = "\
name: [rack-1]
description:
policy:
  settle_s: five
  restarts: -1
  rejoin_wait_s: 1.5
  auto_rejoin: yes
  conditions: {}
  evacuation:
    workloads: some
    at_once: '4'
  fencing: 7
";
        let expected = [
            "1:1: name: is a list; text is allowed",
            "2:12: description: is empty; text is allowed",
            "4:13: policy.settle_s: is \"five\"; a whole number, 0 or more, is allowed",
            "5:13: policy.restarts: is -1; a whole number, 0 or more, is allowed",
            "6:18: policy.rejoin_wait_s: is 1.5; a whole number, 0 or more, is allowed",
            "7:16: policy.auto_rejoin: is \"yes\"; true or false is allowed",
            "8:3: policy.conditions: is a mapping; a list is allowed",
            "10:16: policy.evacuation.workloads: is \"some\"; all or opted_in is allowed",
            "11:14: policy.evacuation.at_once: is \"4\"; a whole number, 0 or more, is allowed",
            "12:12: policy.fencing: is 7; a mapping of keys and values is allowed",
        ];
        assert_eq!(faults(text), expected);
    }

    #[test]
    fn a_plain_true_is_a_word_where_a_word_is_wanted() {
        let segment =
            one("name: 17\ndescription: true\npolicy:\n  conditions: [{condition: Down, status: False}]\n");
        assert_eq!(
            (segment.name.as_str(), segment.description.as_str()),
            ("17", "true")
        );
        assert_eq!(segment.policy.conditions[0].status, ConditionStatus::False);
        let found = faults("name: a\npolicy:\n  conditions: [{condition: Down, status: 7}]\n");
        assert_eq!(
            found,
            ["3:42: policy.conditions[0].status: is \"7\"; one of True, False, Unknown is allowed"]
        );
    }

    #[test]
    fn what_is_missing_is_told_where_it_belongs() {
        assert_eq!(faults("description: a\n"), ["1:1: name: is missing"]);
        let found = faults("name: a\npolicy:\n  conditions:\n  - for_s: 3\n");
        assert_eq!(found, ["4:5: policy.conditions[0].condition: is missing"]);
        let found = faults("name: a\npolicy:\n  quarantine: {fences: 3}\n");
        assert_eq!(found, ["3:3: policy.quarantine.within_s: is missing"]);
        assert_eq!(
            faults("just text\n"),
            ["1:1: the document: is \"just text\"; a mapping of keys and values is allowed"]
        );
    }

    #[test]
    fn a_second_key_and_a_second_document_of_one_name_are_refused() {
        let found = faults("name: a\npolicy:\n  restarts: 1\n  restarts: 2\n");
        assert_eq!(
            found,
            ["4:3: \"restarts\" is given a second time; each key is allowed once"]
        );
        let found = faults("name: a\n---\nname: b\n---\nname: a\n");
        assert_eq!(
            found,
            ["5:7: name: is \"a\", as in a document before; each segment is allowed once"]
        );
    }

    #[test]
    fn documents_without_content_are_left_out() {
        let found = read("# only a comment\n---\nname: a\n---\n---\nname: b\n").unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|document| document.segment.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert!(read("# nothing\n").unwrap().is_empty());
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn text_that_is_no_yaml_is_told_at_its_place() {
        let found = faults("name: a\npolicy:\n  fencing: {at_most: 3\n");
        assert!(found[0].contains(": is not YAML: "), "{found:?}");
        let found = faults("name: a\npolicy: }\n");
        assert!(found[0].starts_with("2:"), "{found:?}");
    }

    #[test]
    fn anchors_aliases_tags_and_depth_are_refused() {
        let bomb = "name: a\npolicy: &a [x, x]\nb: [*a, *a]\n";
        let found = faults(bomb);
        assert!(found[0].starts_with("2:12: anchors and aliases"), "{found:?}");
        let found = faults("name: a\npolicy:\n  <<: {restarts: 1}\n");
        assert_eq!(found, ["3:3: merge keys (<<) are not allowed"]);
        let found = faults("name: !secret a\n");
        assert!(found[0].starts_with("1:"), "{found:?}");
        let deep = format!("name: a\npolicy: {}{}\n", "[".repeat(100), "]".repeat(100));
        let found = faults(&deep);
        assert!(found[0].starts_with("2:"), "{found:?}");
        let many = "name: a\n---\n".repeat(2000);
        let found = faults(&many);
        assert!(found[0].contains("more than 1000 documents"), "{:?}", found[0]);
    }
}
