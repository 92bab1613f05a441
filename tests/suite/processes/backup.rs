//! `ringfence backup` and `ringfence restore`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ringfence_tests::{Client, Machine, Service};
use serde_json::json;

const WORDS: [&str; 5] = ["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"];

async fn start(machine: &Machine) -> (Service, Client) {
    let mut service = machine.start("standalone", &WORDS);
    let url = service.until_it_listens("ready").await;
    let token = std::fs::read_to_string(machine.file("data/admin.token")).unwrap();
    (service, Client::new(&url, Some(token.trim())))
}

async fn add_host(client: &Client, name: &str) {
    client.post("/hosts", json!({ "name": name })).await.ok(201);
}

async fn names(client: &Client) -> Vec<String> {
    let hosts = client.get("/hosts").await.ok(200);
    let hosts = hosts["hosts"].as_array().unwrap();
    hosts
        .iter()
        .map(|host| host["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn backup(machine: &Machine, file: &str) -> ringfence_tests::Run {
    machine.run(&["backup", file, "--data-dir", "data"]).await
}

async fn restore(machine: &Machine, file: &str) -> ringfence_tests::Run {
    machine.run(&["restore", file, "--data-dir", "data"]).await
}

/// The directories beside the data directory that a restore has left.
fn beside(machine: &Machine) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(machine.path()).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("data."));
    paths
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_running_service_restores_its_state() {
    let machine = Machine::new();
    let (service, client) = start(&machine).await;
    add_host(&client, "h1").await;
    client.seen("h1", "UP").await.ok(200);
    // Hosts are added while the backup is made.
    let busy = client.clone();
    let writing = tokio::spawn(async move {
        for number in 0..40 {
            add_host(&busy, &format!("busy-{number}")).await;
        }
    });
    let made = backup(&machine, "rf.tar").await;
    assert_eq!(made.code, Some(0), "{made:?}");
    writing.await.unwrap();
    for part in [
        "schema",
        "ringfence.db",
        "tokens.toml",
        "admin.token",
        "webhooks.keys",
    ] {
        assert!(made.out.contains(part), "{made:?}");
    }
    let mode = std::fs::metadata(machine.file("rf.tar"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = backup(&machine, "rf.tar").await;
    assert_eq!(again.code, Some(2), "{again:?}");
    add_host(&client, "later").await;

    let held = restore(&machine, "rf.tar").await;
    assert_eq!(held.code, Some(2), "{held:?}");
    assert!(held.err.contains("another ringfence runs"), "{held:?}");
    assert!(names(&client).await.contains(&"later".to_owned()));
    service.stop().await;

    let restored = restore(&machine, "rf.tar").await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let before = beside(&machine);
    assert_eq!(before.len(), 1, "{before:?}");
    assert!(
        restored
            .out
            .contains(before[0].file_name().unwrap().to_str().unwrap()),
        "{restored:?}"
    );
    assert!(before[0].join("ringfence.db").exists());
    let (service, client) = start(&machine).await;
    let names = names(&client).await;
    assert!(
        names.contains(&"h1".to_owned()) && !names.contains(&"later".to_owned()),
        "{names:?}"
    );
    // The restored state is consistent: each host has its event.
    let events = client.get("/events?limit=1000").await.ok(200);
    let created = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "host.created");
    assert_eq!(created.count(), names.len());
    assert_eq!(client.host("h1").await["failure_state"], "UP");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_can_be_restored_on_an_empty_machine() {
    let machine = Machine::new();
    let (service, client) = start(&machine).await;
    add_host(&client, "h1").await;
    service.stop().await;
    assert_eq!(backup(&machine, "rf.tar").await.code, Some(0));
    let other = Machine::new();
    std::fs::copy(machine.file("rf.tar"), other.file("rf.tar")).unwrap();
    let restored = restore(&other, "rf.tar").await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(beside(&other).is_empty());
    let mode = std::fs::metadata(other.file("data"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let (service, client) = start(&other).await;
    assert_eq!(names(&client).await, ["h1"]);
    service.stop().await;
}

fn spoil(machine: &Machine, file: &str, spoil: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(machine.file("rf.tar")).unwrap();
    spoil(&mut bytes);
    std::fs::write(machine.file(file), bytes).unwrap();
}

async fn pretend_newer(database: &Path) {
    use sqlx::Connection;
    let url = format!("sqlite://{}", database.display());
    let mut connection = sqlx::SqliteConnection::connect(&url).await.unwrap();
    let sql = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
               VALUES (9999, 'from the future', true, '', 0)";
    sqlx::query(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_is_damaged_or_newer_changes_nothing() {
    let machine = Machine::new();
    let (service, client) = start(&machine).await;
    add_host(&client, "h1").await;
    service.stop().await;
    assert_eq!(backup(&machine, "rf.tar").await.code, Some(0));
    let (service, client) = start(&machine).await;
    add_host(&client, "h2").await;
    service.stop().await;

    spoil(&machine, "flipped.tar", |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
    spoil(&machine, "cut.tar", |bytes| bytes.truncate(bytes.len() / 2));
    spoil(&machine, "short.tar", |bytes| bytes.truncate(100));
    std::fs::write(machine.file("other.tar"), vec![b'x'; 4096]).unwrap();
    std::fs::write(machine.file("empty.tar"), "").unwrap();
    pretend_newer(&machine.file("data/ringfence.db")).await;
    assert_eq!(backup(&machine, "newer.tar").await.code, Some(0));
    let before = std::fs::read(machine.file("data/ringfence.db")).unwrap();
    for (file, why) in [
        ("flipped.tar", "its checksum differs"),
        ("cut.tar", "cannot be restored"),
        ("short.tar", "cannot be restored"),
        ("other.tar", "is no backup"),
        ("empty.tar", "is empty"),
        ("newer.tar", "has schema 9999, which is newer than this build's"),
        ("missing.tar", "cannot read"),
    ] {
        let refused = restore(&machine, file).await;
        assert_eq!(refused.code, Some(2), "{file}: {refused:?}");
        assert!(refused.err.contains(why), "{file}: {refused:?}");
        assert!(beside(&machine).is_empty(), "{file} left {:?}", beside(&machine));
        assert_eq!(
            std::fs::read(machine.file("data/ringfence.db")).unwrap(),
            before,
            "{file}"
        );
    }
    let nothing = machine.run(&["backup", "x.tar", "--data-dir", "nowhere"]).await;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(
        nothing.err.contains("no standalone service has run there"),
        "{nothing:?}"
    );
    assert!(!machine.file("nowhere").exists() && !machine.file("x.tar").exists());
}
