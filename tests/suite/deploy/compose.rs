//! The compose file and the secrets that are made for it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use ringfence_lab::find_program;
use ringfence_tests::{Machine, tell};
use serde_json::Value;

use super::{accepted, check, pairs, secrets, source, text, yaml};

fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{name}");
            (name, std::fs::read(file.path()).unwrap())
        })
        .collect()
}

#[test]
fn secrets_are_made_once_and_for_their_owner_only() {
    let machine = Machine::new();
    let folder = secrets(&machine);
    let made = content(&folder);
    secrets(&machine);
    assert_eq!(content(&folder), made);
    let mut verify = Command::new("openssl");
    verify.arg("verify").arg("-CAfile").arg(folder.join("ca.pem"));
    for name in ["api.pem", "rabbitmq.pem", "postgres.pem"] {
        verify.arg(folder.join(name));
    }
    text(&mut verify);
    let left_open = |(name, text): (&String, &Vec<u8>)| {
        let open = ["@DATABASE@", "@BUS@", "@API@", "@ENGINE@", "@WORKER@"];
        let text = String::from_utf8_lossy(text);
        open.iter().any(|word| text.contains(word)).then(|| name.clone())
    };
    assert_eq!(made.iter().find_map(left_open), None);
    // Another run makes files with equal names and, except the lock file, different content.
    let other = content(&secrets(&Machine::new()));
    assert!(made.keys().eq(other.keys()));
    let same: Vec<_> = made
        .iter()
        .filter(|(name, text)| other[*name] == **text)
        .collect();
    assert!(same.iter().all(|(name, _)| *name == ".lock"), "{same:?}");
}

#[tokio::test]
async fn every_service_of_the_compose_file_has_the_files_that_it_names() {
    let machine = Machine::new();
    let made = secrets(&machine);
    let file = yaml(&source("docker-compose.yml"));
    let mut ours = 0;
    for (name, service) in file["services"].as_object().unwrap() {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        let limits = &service["deploy"]["resources"]["limits"];
        assert!(
            limits["cpus"].is_string() && limits["memory"].is_string(),
            "{name}"
        );
        assert!(
            service["pids_limit"].is_u64() && service["restart"].is_string(),
            "{name}"
        );
        assert!(
            service["healthcheck"].is_object() || service["build"].is_object(),
            "{name}"
        );
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(
                port.as_str()
                    .unwrap()
                    .starts_with("${RF_COMPOSE_ADDRESS:-127.0.0.1}:"),
                "{name}"
            );
        }
        let given: Vec<_> = service["secrets"].as_array().unwrap().iter().collect();
        for secret in &given {
            let secret = secret.as_str().unwrap();
            assert!(file["secrets"][secret].is_object(), "{name}: {secret}");
            assert!(made.join(secret).is_file(), "{name}: {secret}");
        }
        for volume in service["volumes"].as_array().into_iter().flatten() {
            let from = volume.as_str().unwrap().split(':').next().unwrap();
            if from.starts_with("./") {
                assert!(source(from).exists(), "{name}: {from}");
            }
        }
        let variables = pairs(&service["environment"]);
        for (variable, value) in &variables {
            let Some(secret) = value.strip_prefix("/run/secrets/") else {
                continue;
            };
            assert!(given.iter().any(|given| *given == secret), "{name}: {variable}");
        }
        let Some((_, config)) = variables.iter().find(|(name, _)| name == "RINGFENCE_CONFIG") else {
            continue;
        };
        let config = made.join(config.strip_prefix("/run/secrets/").unwrap());
        check(&config, &variables).await;
        for secret in named(&config) {
            let is_migration = name == "migrate" && !secret.ends_with(".pem");
            assert!(
                is_migration || given.iter().any(|given| *given == &secret) || name == "migrate",
                "{name}: {secret}"
            );
        }
        let mut words: Vec<_> = service["command"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        words.push("--help");
        accepted(&machine.run(&words).await);
        ours += 1;
    }
    assert_eq!(ours, 9, "migration, APIs, hooks, engines, workers");
}

/// The secrets that a configuration refers to.
fn named(config: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(config).unwrap();
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.');
    let after = text.split("/run/secrets/").skip(1);
    after
        .map(|rest| rest.split(ends).next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn compose_itself_accepts_the_compose_file() {
    let Some(program) = find_program("docker-compose") else {
        tell("SKIPPED: docker-compose is not installed; the compose file is not checked against its schema");
        return;
    };
    let machine = Machine::new();
    secrets(&machine);
    // Compose 1 does not know the key `name`.
    let file = std::fs::read_to_string(source("docker-compose.yml")).unwrap();
    std::fs::write(
        machine.file("docker-compose.yml"),
        file.replace("\nname: ringfence\n", "\n"),
    )
    .unwrap();
    text(
        Command::new(program)
            .arg("--project-directory")
            .arg(source("."))
            .arg("--env-file")
            .arg(machine.file("compose.env"))
            .arg("--file")
            .arg(machine.file("docker-compose.yml"))
            .args(["config", "--quiet"]),
    );
    let _: Value = yaml(&source("deploy/compose/prometheus.yml"));
}
