//! Contexts: several services with names.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::rig::Machine;
use crate::service::{Reply, Service};

fn empty() -> Service {
    Service::start(|_, _| Reply::json(200, &json!({"hosts": [], "links": []})))
}

fn token(machine: &Machine, name: &str) -> String {
    let path = machine.home().join(name);
    fs::write(&path, format!("rf_{name}\n")).unwrap();
    path.display().to_string()
}

#[test]
fn the_current_context_gives_the_services_address_and_token() {
    let (paris, tokyo) = (empty(), empty());
    let machine = Machine::new();
    for (name, service) in [("paris", &paris), ("tokyo", &tokyo)] {
        let token = token(&machine, name);
        let run = machine.run(&[
            "context",
            "set",
            name,
            "--url",
            &service.url,
            "--token-file",
            &token,
        ]);
        assert_eq!(run.code, 0, "{run:?}");
    }
    assert_eq!(machine.run(&["host", "list"]).code, 0);
    assert_eq!(machine.run(&["host", "list", "--context", "tokyo"]).code, 0);
    assert_eq!(machine.run(&["context", "use", "tokyo"]).code, 0);
    assert_eq!(machine.run(&["host", "list"]).code, 0);
    let tokens = |service: &Service| {
        let asked = service.asked();
        let tokens = asked
            .iter()
            .map(|asked| asked.header("x-auth-token").unwrap_or_default().to_owned());
        tokens.collect::<Vec<_>>()
    };
    assert_eq!(tokens(&paris), ["rf_paris"]);
    assert_eq!(tokens(&tokyo), ["rf_tokyo", "rf_tokyo"]);
    let listed = machine.run(&["context", "list", "-o", "json"]).json();
    assert_eq!(listed["current"], "tokyo");
    assert_eq!(listed["contexts"]["paris"]["url"], paris.url);
    let file = machine.home().join(".config/ringfence/contexts.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        !fs::read_to_string(&file).unwrap().contains("rf_"),
        "no token is in it"
    );

    // A context on the command line and the environment's variables go before the current context.
    let elsewhere = empty();
    assert_eq!(machine.run(&["host", "list", "--url", &elsewhere.url]).code, 0);
    assert_eq!(tokens(&elsewhere), [""]);
    let machine = machine
        .set("RINGFENCE_URL", &elsewhere.url)
        .set("RINGFENCE_TOKEN", "rf_env");
    assert_eq!(machine.run(&["host", "list"]).code, 0);
    assert_eq!(tokens(&elsewhere), ["", "rf_env"]);
    // A context on the command line goes before the environment, and the environment's token is not used for it.
    assert_eq!(machine.run(&["host", "list", "--context", "paris"]).code, 0);
    assert_eq!(tokens(&paris), ["rf_paris", "rf_paris"]);
    let both = machine.run(&["host", "list", "--context", "paris", "--url", &tokyo.url]);
    assert_eq!(both.code, 2, "{both:?}");
}

#[test]
fn an_unknown_context_is_refused_with_the_known_ones() {
    let machine = Machine::new();
    let none = machine.run(&["host", "list", "--context", "paris"]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(
        none.err.contains("ringfence context set NAME --url URL"),
        "{none:?}"
    );
    for bad in [
        ["context", "set", "paris", "--url", "ftp://x"].as_slice(),
        &["context", "set", "paris"],
        &["context", "set", "a b", "--url", "http://h"],
    ] {
        assert_eq!(machine.run(bad).code, 2, "{bad:?}");
    }
    assert_eq!(
        machine
            .run(&["context", "set", "paris", "--url", "http://h"])
            .code,
        0
    );
    let other = machine.run(&["context", "use", "pari"]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("there are paris"), "{other:?}");
    assert_eq!(machine.run(&["context", "remove", "paris"]).code, 0);
    assert_eq!(
        machine.run(&["context", "list"]).out,
        "USED  NAME  SERVICE  TOKEN FILE  CA FILE\n"
    );
    assert_eq!(
        machine.run(&["host", "list"]).code,
        6,
        "no context is current any more"
    );
}
