//! The token file.

use std::time::Duration;

use ringfence_api::{Role, Tokens, hash_token};

const NOW: &str = "2026-01-01T00:00:00Z";

fn entry(name: &str, token: &str, more: &str) -> String {
    format!(
        "[[token]]\nname = {name:?}\nrole = \"operator\"\nsha256 = {:?}\n{more}\n",
        hash_token(token)
    )
}

#[test]
fn an_expired_token_does_not_work() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    let text = entry("old", "one", "expires_at = \"2025-12-31T23:59:59Z\"")
        + &entry("new", "two", "expires_at = \"2026-01-02T00:00:00Z\"");
    std::fs::write(&path, text).unwrap();
    let tokens = Tokens::open(&path).unwrap();
    let now = NOW.parse().unwrap();
    assert_eq!(tokens.find("one", now), None);
    assert_eq!(tokens.find("two", now), Some(("new".to_owned(), Role::Operator)));
    assert_eq!(tokens.find("three", now), None);
}

#[test]
fn a_revoked_token_stops_working_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    std::fs::write(&path, entry("a", "one", "") + &entry("b", "two", "")).unwrap();
    let tokens = Tokens::open(&path).unwrap();
    let now = NOW.parse().unwrap();
    assert!(tokens.find("one", now).is_some());
    std::fs::write(&path, entry("b", "two", "")).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(tokens.find("one", now).is_none());
    assert!(tokens.find("two", now).is_some());
}

#[test]
fn an_incomplete_file_locks_no_caller_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    std::fs::write(&path, entry("a", "one", "")).unwrap();
    let tokens = Tokens::open(&path).unwrap();
    std::fs::write(&path, "[[token]]\nname = \"a").unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(tokens.find("one", NOW.parse().unwrap()).is_some());
}

#[test]
fn a_file_with_an_unknown_key_or_role_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tokens.toml");
    for (text, named) in [
        (entry("a", "one", "colour = \"red\""), "colour"),
        (entry("a", "x", "").replace("operator", "king"), "king"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Tokens::open(&path).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("tokens.toml"), "{error}");
    }
}
