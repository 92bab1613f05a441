//! What the page promises: all of it is embedded, it is small, and it asks no other place for anything.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::path::Path;

use ringfence_dashboard::{FILES, file};

/// Bytes of all files together, uncompressed.
const MAX_BYTES: usize = 150_000;
/// Names of XML vocabularies, which nothing is loaded from.
const VOCABULARY: &str = "http://www.w3.org/";

#[test]
fn every_file_of_the_page_is_embedded_and_no_other() {
    let mut there = BTreeSet::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("page"),
        "",
        &mut there,
    );
    let embedded: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(embedded, there);
}

#[test]
fn the_page_is_small() {
    let bytes: usize = FILES.iter().map(|(_, file)| file.bytes.len()).sum();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes are more than {MAX_BYTES}");
}

#[test]
fn no_file_names_another_place() {
    for (name, file) in FILES {
        let text = std::str::from_utf8(file.bytes).unwrap();
        for scheme in ["http://", "https://"] {
            for (at, _) in text.match_indices(scheme) {
                assert!(
                    text[at..].starts_with(VOCABULARY),
                    "{name} names an address at byte {at}"
                );
            }
        }
    }
}

#[test]
fn the_empty_path_is_the_page_and_a_path_that_is_no_file_is_nothing() {
    assert_eq!(file(""), file("index.html"));
    assert_eq!(file("").unwrap().content_type, "text/html; charset=utf-8");
    assert_eq!(file("hosts/sim-1"), None);
    assert_eq!(file("../Cargo.toml"), None);
}

fn collect(folder: &Path, prefix: &str, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &format!("{name}/"), names);
        } else {
            names.insert(name);
        }
    }
}
