//! The Helm chart.

use std::process::Command;

use ringfence_lab::find_program;
use ringfence_tests::{Machine, tell};
use serde_json::Value;

use super::{accepted, check, pairs, secrets, source, text, tool};

#[tokio::test]
async fn the_manifests_of_the_chart_are_accepted_by_kubernetes_and_ringfence() {
    if find_program("helm").is_none() {
        tell(
            "SKIPPED: helm is not installed; the chart is rendered by deploy/helm/check/render.go and not by Helm itself",
        );
    }
    let machine = Machine::new();
    let containers = text(
        Command::new(tool("python"))
            .arg(source("deploy/helm/check/check.py"))
            .arg(tool("go"))
            .env("GOCACHE", machine.file("gocache"))
            .env("GOTELEMETRY", "off")
            .env("HOME", machine.path()),
    );
    let containers: Vec<Value> = serde_json::from_str(&containers).unwrap();
    assert!(!containers.is_empty());
    let secrets = secrets(&machine);
    for container in &containers {
        let variables = pairs(&container["env"]);
        let file = match container["configuration"].as_str() {
            Some(made) => {
                let file = machine.file("ringfence.toml");
                std::fs::write(&file, made).unwrap();
                file
            }
            None => {
                let mut variables = variables.iter();
                let (_, file) = variables.find(|(name, _)| name == "RINGFENCE_CONFIG").unwrap();
                secrets.join(file.strip_prefix("/run/ringfence/").unwrap())
            }
        };
        check(&file, &variables).await;
        // The test starts no program for the arguments: only `ringfence` would understand them.
        let words = container["args"].as_array().unwrap();
        let mut words: Vec<_> = words.iter().map(|word| word.as_str().unwrap()).collect();
        words.push("--help");
        accepted(&machine.run(&words).await);
    }
}
