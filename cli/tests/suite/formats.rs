//! Output formats, shell completions and manual pages.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::rig::Machine;
use crate::service::{Reply, Service};

fn host(name: &str, seen: &str) -> Value {
    json!({
        "id": format!("id-{name}"), "name": name, "segment": "rack-1", "backend": "none", "zone": "north", "type": "blade",
        "failure_state": seen, "failure_source": "nagios", "fencing_state": "UNFENCED", "generation": 0, "operation": null,
    })
}

fn list(hosts: &[Value]) -> Reply {
    Reply::json(200, &json!({"hosts": hosts, "links": []}))
}

#[test]
fn an_answer_is_yaml_on_request() {
    let service = Service::start(|_, asked| match asked.line.as_str() {
        "GET /hosts/c1" => Reply::json(200, &host("c1", "UP")),
        _ => Reply::error(404, "fencing.host.not_found", "there is no host c9"),
    });
    let machine = Machine::with(&service);
    let run = machine.run(&["host", "show", "c1", "-o", "yaml"]);
    assert_eq!(run.code, 0, "{run:?}");
    for line in ["name: c1\n", "generation: 0\n", "operation: null\n"] {
        assert!(run.out.contains(line), "{line:?} in {}", run.out);
    }
    let run = machine.run(&["host", "show", "c9", "-o", "yaml"]);
    assert_eq!(run.code, 4);
    assert!(
        run.err.starts_with("errors:") && run.err.contains("code: fencing.host.not_found"),
        "{run:?}"
    );
}

#[test]
fn a_wide_list_has_more_columns() {
    let service = Service::start(|_, _| list(&[host("c1", "UP")]));
    let machine = Machine::with(&service);
    let narrow = machine.run(&["host", "list"]);
    assert!(!narrow.out.contains("ZONE"), "{narrow:?}");
    let wide = machine.run(&["host", "list", "-o", "wide"]);
    let lines: Vec<Vec<&str>> = wide
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0][6..9], ["TYPE", "ZONE", "BACKEND"], "{wide:?}");
    assert_eq!(lines[1][6..9], ["blade", "north", "none"], "{wide:?}");
}

#[test]
fn a_watched_list_shows_changes_also_after_a_restart_of_the_service() {
    let service = Service::start(|number, _| match number {
        0 => list(&[host("c1", "UP"), host("c2", "UP")]),
        1 => Reply::error(503, "fencing.database.unavailable", "away"),
        _ => list(&[host("c1", "UNREACHABLE"), host("c2", "UP")]),
    });
    let machine = Machine::with(&service);
    let mut child = machine
        .command(&["host", "list", "--watch"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let lines: Vec<String> = out.lines().take(4).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let words: Vec<Vec<&str>> = lines
        .iter()
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    assert_eq!(
        words,
        [
            ["NAME", "SEGMENT", "SEEN"],
            ["c1", "rack-1", "UP"],
            ["c2", "rack-1", "UP"],
            ["c1", "rack-1", "UNREACHABLE"]
        ]
    );
}

#[test]
fn the_version_command_shows_program_and_service_and_an_unreachable_service() {
    let service = Service::start(|_, _| {
        Reply::json(
            200,
            &json!({"versions": [{"id": "v1", "min_version": "1.0", "max_version": "1.0"}]}),
        )
    });
    let run = Machine::with(&service).run(&["version"]);
    let own = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "ringfence {own}\nservice {}/ with API fencing 1.0 to 1.0\n",
        service.url
    );
    assert_eq!((run.code, run.out), (0, expected));
    let alone = Machine::new().run(&["version"]);
    assert_eq!(
        (alone.code, alone.out),
        (0, format!("ringfence {own}\n")),
        "{}",
        alone.err
    );
    let away = Machine::new()
        .set("RINGFENCE_URL", "http://127.0.0.1:9")
        .run(&["version"]);
    assert_eq!((away.code, away.out), (6, format!("ringfence {own}\n")));
}

/// The shell completions of these words.
fn completed(machine: Machine, words: &[&str]) -> Vec<String> {
    let at = (words.len() - 1).to_string();
    let machine = machine.set("COMPLETE", "bash").set("_CLAP_COMPLETE_INDEX", &at);
    let run = machine
        .set("_CLAP_COMPLETE_COMP_TYPE", "9")
        .set("_CLAP_COMPLETE_SPACE", "true")
        .set("_CLAP_IFS", "\n")
        .run(&[&["--"], words].concat());
    assert_eq!(run.code, 0, "{run:?}");
    run.out.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn a_shell_completes_the_names_of_hosts() {
    let service = Service::start(|_, _| {
        list(&[
            host("compute1", "UP"),
            host("compute2", "UP"),
            host("storage1", "UP"),
        ])
    });
    let found = completed(Machine::with(&service), &["ringfence", "host", "fence", "comp"]);
    assert_eq!(found, ["compute1", "compute2"]);
    let found = completed(
        Machine::with(&service),
        &["ringfence", "host", "list", "--name", "stor"],
    );
    assert_eq!(found, ["storage1"]);
    let nowhere = completed(Machine::new(), &["ringfence", "host", "fence", "comp"]);
    assert_eq!(
        nowhere,
        Vec::<String>::new(),
        "a service that is away completes nothing"
    );
    let commands = completed(Machine::new(), &["ringfence", "host", "fen"]);
    assert_eq!(commands, ["fence"]);
}

#[test]
fn each_shell_gets_a_completion_script_that_calls_the_program() {
    let machine = Machine::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = machine.run(&["completions", shell]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(
            run.out.contains("COMPLETE") && run.out.contains("ringfence"),
            "{run:?}"
        );
    }
}

#[test]
fn the_manual_is_printed_or_written_in_pages() {
    let machine = Machine::new();
    let run = machine.run(&["manual"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains(".TH ringfence 1"), "{}", run.out);
    let folder = machine.home().join("man");
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(machine.run(&["manual", folder.to_str().unwrap()]).code, 0);
    let page = std::fs::read_to_string(folder.join("ringfence-host-fence.1")).unwrap();
    assert!(page.contains("Fences a host"), "{page}");
    assert!(
        machine.run(&["--help"]).out.contains("manual"),
        "the help names the manual"
    );
}
