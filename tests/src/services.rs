//! The services as processes on PostgreSQL and RabbitMQ, set up as an operator would do it.

use crate::{Machine, Service, Site};

const KEY: &str = "k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

/// Makes a machine with a schema, a key and an admin's token, and returns the machine and the token.
pub async fn set_up(site: &Site) -> (Machine, String) {
    let machine = Machine::new();
    let (keys, tokens) = (machine.file("keys"), machine.file("tokens.toml"));
    std::fs::write(&keys, KEY).unwrap();
    std::fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let machine = machine
        .set("RINGFENCE_DATABASE_URL", &site.database_url)
        .set("RINGFENCE_BUS_URL", site.amqp_url.as_deref().unwrap())
        .set("RINGFENCE_BUS_PREFIX", &site.prefix)
        .set("RINGFENCE_BUS_KEYS_FILE", keys.display().to_string())
        .set("RINGFENCE_API_TOKENS_FILE", tokens.display().to_string());
    let migrated = machine.run(&["db", "migrate"]).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let made = machine
        .run(&["token", "create", "--name", "alice", "--role", "admin"])
        .await;
    assert_eq!(made.code, Some(0), "{made:?}");
    (machine, made.out.trim().to_owned())
}

/// Starts the API on a free port.
pub fn start_api(machine: &Machine) -> Service {
    machine.start("api", &["api", "--listen", "127.0.0.1:0"])
}

/// Starts an engine of this name.
pub fn start_engine(machine: &Machine, name: &str) -> Service {
    machine.start(name, &["engine", "--name", name])
}

/// Starts a worker of this name.
pub fn start_worker(machine: &Machine, name: &str) -> Service {
    machine.start(name, &["worker", "--name", name])
}
