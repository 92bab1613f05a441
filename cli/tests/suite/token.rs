//! Tokens.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::rig::Machine;

#[test]
fn a_token_is_shown_once_and_kept_as_a_hash() {
    let machine = Machine::new();
    let file = machine.home().join("tokens.toml");
    let machine = machine.set("RINGFENCE_API_TOKENS_FILE", file.to_str().unwrap());
    let made = machine.run(&[
        "token",
        "create",
        "--name",
        "ci",
        "--role",
        "service",
        "--expires-in",
        "90d",
    ]);
    assert_eq!(made.code, 0, "{made:?}");
    let token = made.out.trim();
    assert!(token.starts_with("rf_") && token.len() == 46, "{token}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&token[3..]), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = machine.run(&["token", "create", "--name", "ci", "--role", "admin"]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("already"), "{}", again.err);
    let listed = machine.run(&["token", "list", "--output", "json"]);
    assert_eq!(listed.json()["tokens"][0]["role"], "service");
    assert!(!listed.out.contains("sha256"));
    assert_eq!(machine.run(&["token", "revoke", "ci"]).code, 0);
    assert_eq!(machine.run(&["token", "revoke", "ci"]).code, 2);
}

#[test]
fn a_missing_token_file_is_reported_with_its_configuration_key() {
    let run = Machine::new().run(&["token", "list"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("api.tokens_file is not set"), "{}", run.err);
}

#[test]
fn token_commands_find_the_tokens_of_a_standalone_service() {
    let machine = Machine::new();
    let data = machine.home().join(".local/share/ringfence");
    let none = machine.run(&["token", "list", "--data-dir", data.to_str().unwrap()]);
    assert_eq!(none.code, 2);
    assert!(
        none.err.contains("no standalone service has been started on it"),
        "{}",
        none.err
    );
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("tokens.toml"), "").unwrap();
    let create = ["token", "create", "--role", "reader", "--name"];
    let made = machine.run(&[create.as_slice(), &["ci"]].concat());
    assert_eq!(made.code, 0, "{made:?}");
    assert!(
        fs::read_to_string(data.join("tokens.toml"))
            .unwrap()
            .contains("\"ci\"")
    );

    let elsewhere = machine.home().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("tokens.toml"), "").unwrap();
    let named = ["dora", "--data-dir", elsewhere.to_str().unwrap()];
    assert_eq!(machine.run(&[create.as_slice(), &named].concat()).code, 0);
    assert!(
        fs::read_to_string(elsewhere.join("tokens.toml"))
            .unwrap()
            .contains("\"dora\"")
    );

    // A file that the configuration names goes before the service's.
    let file = machine.home().join("other.toml");
    let machine = machine.set("RINGFENCE_API_TOKENS_FILE", file.to_str().unwrap());
    assert_eq!(machine.run(&[create.as_slice(), &["bob"]].concat()).code, 0);
    assert!(fs::read_to_string(&file).unwrap().contains("\"bob\""));
}
