//! Services that refuse to start, and the reason that they give.

use std::os::unix::fs::PermissionsExt;

use ringfence_tests::{Ground, Machine, Run, Site};
use sqlx::Connection;

/// An address where no database listens.
const NO_BROKER: &str = "amqp://u:hunter2@127.0.0.1:1/%2f";
const NO_DATABASE: &str = "postgres://u:hunter2@127.0.0.1:1/none";
const KEYS: &str = "k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

fn write(machine: &Machine, name: &str, text: &str, mode: u32) -> String {
    let path = machine.file(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    path.display().to_string()
}

fn machine(database_url: &str) -> Machine {
    let machine = Machine::new();
    let keys = write(&machine, "keys", KEYS, 0o600);
    machine
        .set("RINGFENCE_DATABASE_URL", database_url)
        .set("RINGFENCE_BUS_URL", NO_BROKER)
        .set("RINGFENCE_BUS_KEYS_FILE", keys)
}

#[track_caller]
fn refused(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{run:?}");
    for word in words {
        assert!(run.err.contains(word), "{word:?} is not in {run:?}");
    }
    assert!(
        !run.err.contains("hunter2") && !run.out.contains("hunter2"),
        "{run:?}"
    );
}

#[tokio::test]
async fn a_missing_or_newer_schema_ends_the_service_with_a_remedy() {
    let site = Site::new(Ground::Distributed).await;
    let machine = machine(&site.database_url);
    refused(
        &machine.run(&["engine"]).await,
        1,
        &["no schema", "ringfence db migrate"],
    );
    let migrated = machine.run(&["db", "migrate"]).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    assert_eq!(machine.run(&["db", "migrate"]).await.code, Some(0));
    let mut connection = sqlx::PgConnection::connect(&site.database_url).await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (9999, 'newer', true, '\\x00', 0)";
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    refused(&machine.run(&["engine"]).await, 1, &["9999", "newer"]);
    refused(&machine.run(&["db", "migrate"]).await, 1, &["9999", "newer"]);
    connection.close().await.unwrap();
}

#[tokio::test]
async fn a_token_file_that_cannot_be_used_ends_the_api_and_is_named() {
    let machine = machine(NO_DATABASE);
    refused(
        &machine.run(&["api"]).await,
        2,
        &["api.tokens_file is not set", "RINGFENCE_API_TOKENS_FILE"],
    );
    let bad = write(
        &machine,
        "bad.toml",
        "[[token]]\nname = \"a\"\nrole = \"king\"\n",
        0o600,
    );
    let missing = machine.file("missing.toml").display().to_string();
    let folder = machine.path().display().to_string();
    for path in [missing, bad, folder] {
        let with = self::machine(NO_DATABASE).set("RINGFENCE_API_TOKENS_FILE", &path);
        let run = with.run(&["api"]).await;
        assert!(matches!(run.code, Some(1 | 2)), "{run:?}");
        assert!(run.err.contains(&path), "{run:?}");
    }
}

#[tokio::test]
async fn a_wrong_configuration_names_its_key() {
    let fresh = || machine(NO_DATABASE);
    let run = Machine::new().run(&["engine"]).await;
    refused(&run, 2, &["bus.keys_file is not set", "RINGFENCE_BUS_KEYS_FILE"]);
    let no_database = machine(NO_DATABASE).set("RINGFENCE_DATABASE_URL", "");
    refused(
        &no_database.run(&["engine"]).await,
        2,
        &["database.url is not set"],
    );
    let wrong = fresh().set("RINGFENCE_ENGINE_TICK_MS", "soon");
    refused(
        &wrong.run(&["engine"]).await,
        2,
        &["engine.tick_ms", "soon", "60000"],
    );
    let unknown = fresh().set("RINGFENCE_WORKER_ZONE", "a");
    refused(
        &unknown.run(&["worker"]).await,
        2,
        &["RINGFENCE_WORKER_ZONE", "RINGFENCE_WORKER_ZONES"],
    );
    let url = fresh().set("RINGFENCE_DATABASE_URL", "mysql://u:hunter2@h/d");
    refused(&url.run(&["engine"]).await, 2, &["database.url", "postgres"]);
    let machine = fresh();
    let file = write(&machine, "r.toml", "[engine]\nnam = \"e\"\n", 0o600);
    refused(
        &machine.run(&["engine", "--config", &file]).await,
        2,
        &["r.toml:2", "engine.nam", "engine.name"],
    );
    refused(
        &machine.run(&["engine", "--config", "/nowhere.toml"]).await,
        2,
        &["/nowhere.toml"],
    );
    let open = write(&machine, "open-keys", KEYS, 0o644);
    let open = fresh().set("RINGFENCE_BUS_KEYS_FILE", open);
    refused(&open.run(&["worker"]).await, 2, &["open-keys", "chmod 600"]);
}

#[tokio::test]
async fn standalone_listens_on_this_machine_only() {
    let machine = Machine::new();
    let run = machine
        .run(&["standalone", "--data-dir", "data", "--listen", "0.0.0.0:0"])
        .await;
    refused(
        &run,
        2,
        &[
            "standalone.listen is 0.0.0.0:0",
            "api.certificate_file",
            "127.0.0.1",
        ],
    );
}
