//! For tests: the fields that a definition names, and those that a value has.

use std::collections::BTreeSet;

use serde_json::Value;

/// The paths of all fields that a definition names.
pub(crate) fn defined(definition: &str) -> BTreeSet<String> {
    let definition: Value = serde_saphyr::from_str(definition).unwrap();
    let mut found = BTreeSet::new();
    named(
        &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        "",
        &mut found,
    );
    found
}

/// The paths of all fields of a value.
pub(crate) fn written(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    has(value, "", &mut found);
    found
}

fn named(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{at}.{name}");
        found.insert(path.clone());
        named(inner, &path, found);
        named(&inner["items"], &path, found);
    }
}

fn has(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        let path = format!("{at}.{name}");
        found.insert(path.clone());
        has(inner, &path, found);
        has(&inner[0], &path, found);
    }
}
