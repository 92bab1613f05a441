//! Configuration, as commands show it.

use std::fs;

use crate::rig::Machine;

#[test]
fn config_check_names_the_source_of_each_value_and_masks_passwords() {
    let machine = Machine::new().set("RINGFENCE_DATABASE_URL", "postgres://ring:hush@db/ringfence");
    let file = machine.home().join("ringfence.toml");
    fs::write(&file, "[engine]\ntick_ms = 50\n").unwrap();
    let run = machine.run(&[
        "config",
        "check",
        "--config",
        file.to_str().unwrap(),
        "--log-level",
        "debug",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!run.out.contains("hush"));
    let line = |key: &str| {
        run.out
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap()
            .to_owned()
    };
    assert!(line("database.url").contains("postgres://ring:***@db/ringfence"));
    assert!(line("database.url").ends_with("env RINGFENCE_DATABASE_URL"));
    assert!(line("engine.tick_ms").ends_with(&format!("file {}:2", file.display())));
    assert!(line("log.level").ends_with("flag --log-level"));
    assert!(line("log.format").ends_with("default"));
}

#[test]
fn a_misspelt_key_is_named_with_its_line_and_the_nearest_known_one() {
    let machine = Machine::new();
    let file = machine.home().join("r.toml");
    fs::write(&file, "[worker]\nzone = [\"a\"]\n").unwrap();
    let run = machine
        .set("RINGFENCE_CONFIG", file.to_str().unwrap())
        .run(&["config", "check"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err
            .contains("r.toml:2: worker.zone is not a known key; did you mean worker.zones?"),
        "{}",
        run.err
    );
}

#[test]
fn all_errors_of_a_configuration_are_reported_at_once() {
    let machine = Machine::new()
        .set("RINGFENCE_LOG_LEVLE", "info")
        .set("RINGFENCE_ENGINE_TICK_MS", "1");
    let run = machine.run(&["engine", "--log-format", "xml"]);
    assert_eq!(run.code, 2);
    for part in [
        "RINGFENCE_LOG_LEVLE is not known; did you mean RINGFENCE_LOG_LEVEL?",
        "engine.tick_ms (env RINGFENCE_ENGINE_TICK_MS) is 1; a whole number from 10 to 60000 is allowed",
        "log.format (flag --log-format) is \"xml\"; text, json is allowed",
    ] {
        assert!(run.err.contains(part), "{part} in {}", run.err);
    }
}

#[test]
fn a_file_that_cannot_be_read_or_is_incomplete_is_reported() {
    let machine = Machine::new();
    let run = machine.run(&["config", "check", "--config", "/no/such/ringfence.toml"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err
            .contains("cannot read the configuration /no/such/ringfence.toml"),
        "{}",
        run.err
    );
    let file = machine.home().join("r.toml");
    fs::write(&file, "[api]\nlisten = \"127.0.").unwrap();
    let run = machine.run(&["config", "check", "--config", file.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(
        run.err
            .contains("r.toml:2: not TOML, or only the first part of it"),
        "{}",
        run.err
    );
}

#[test]
fn help_lists_the_exit_codes_and_completions_are_scripts() {
    let machine = Machine::new();
    let run = machine.run(&["--help"]);
    assert!(run.out.contains("8  --timeout ran out"), "{}", run.out);
    for shell in ["bash", "zsh", "fish"] {
        let run = machine.run(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.out.contains("ringfence"), "{shell}");
    }
}
