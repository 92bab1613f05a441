//! The committed OpenAPI document equals the generated one.

use std::path::Path;

use ringfence_api::openapi_json;

/// Set this variable to write the document instead of comparing it.
const BLESS: &str = "RINGFENCE_BLESS";

#[test]
fn the_committed_document_equals_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openapi/openapi.json");
    let made = openapi_json();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "openapi/openapi.json differs from the generated document; run `{BLESS}=1 cargo test -p ringfence-api openapi` and commit it"
    );
}

#[test]
fn every_call_has_a_name_of_its_own() {
    let document: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut names = std::collections::BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, call) in methods.as_object().unwrap() {
            let name = call["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{name} is also {method} {path}");
        }
    }
}

#[test]
fn every_path_describes_its_answer_to_a_caller_without_a_token() {
    let document: serde_json::Value = serde_json::from_str(&openapi_json()).unwrap();
    let open = [
        "/",
        "/healthcheck",
        "/kubernetes/admission/{cluster}",
        "/sessions/ways",
    ];
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, call) in methods.as_object().unwrap() {
            let says_401 = call["responses"].get("401").is_some();
            assert_eq!(says_401, !open.contains(&path.as_str()), "{method} {path}");
        }
    }
}
