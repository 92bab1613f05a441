//! Services of two builds side by side, for as long as an upgrade takes.

use ringfence_tests::{
    Client, Ground, Machine, Service, Site, set_up, start_api, start_engine, start_worker, tell,
};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::distributed::configure;

/// A column more for each table that a fence is read from or written to.
const WIDER: [&str; 7] = [
    "ALTER TABLE segments ADD COLUMN newer text",
    "ALTER TABLE hosts ADD COLUMN newer text NOT NULL DEFAULT 'of the newer build'",
    "ALTER TABLE operations ADD COLUMN newer text NOT NULL DEFAULT 'of the newer build'",
    "ALTER TABLE proofs ADD COLUMN newer bigint NOT NULL DEFAULT 0",
    "ALTER TABLE events ADD COLUMN newer jsonb NOT NULL DEFAULT '{}'",
    "ALTER TABLE outbox ADD COLUMN newer boolean NOT NULL DEFAULT false",
    "ALTER TABLE method_checks ADD COLUMN newer timestamptz",
];

/// As a newer build's `db migrate` leaves the database: one migration more, and what it says of builds before it.
async fn migrated_by_a_newer_build(site: &Site, is_compatible: bool) {
    let mut connection = PgConnection::connect(&site.database_url).await.unwrap();
    let mut statements = vec![
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         SELECT max(version) + 1, 'newer', true, '\\x00', 0 FROM _sqlx_migrations",
    ];
    if is_compatible {
        statements.push(
            "INSERT INTO schema_compatibility (version, compatible_from) \
             SELECT max(version), max(version) - 1 FROM _sqlx_migrations",
        );
        // What such a migration may do: a table of its own, and columns and indexes of those that older builds read and write.
        statements.push("CREATE TABLE newer (host_id uuid PRIMARY KEY REFERENCES hosts (id))");
        statements.push("CREATE INDEX hosts_by_host_type ON hosts (host_type)");
        statements.extend(WIDER);
    }
    for statement in statements {
        sqlx::query(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
}

async fn fence(client: &Client, host: &str) {
    client
        .post(&format!("/hosts/{host}/fence"), json!({ "reason": "upgrade" }))
        .await
        .ok(202);
    client
        .until(&format!("/hosts/{host}"), |host| {
            host["fencing_state"] == "FENCED"
        })
        .await;
}

#[tokio::test]
async fn an_older_engine_goes_on_beside_a_newer_schema_until_one_comes_that_ends_it() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let mut api = start_api(&machine);
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    let running = start_engine(&machine, "engine-1");
    let _worker = start_worker(&machine, "worker-1");
    configure(&machine, &client, &["h1", "h2", "h3"], json!({})).await;
    fence(&client, "h1").await;

    migrated_by_a_newer_build(&site, true).await;
    fence(&client, "h2").await;
    // One that is started again by whoever watches over it is no worse off.
    running.stop().await;
    let again = start_engine(&machine, "engine-1");
    fence(&client, "h3").await;
    let left_alone = machine.run(&["db", "migrate"]).await;
    assert_eq!(left_alone.code, Some(0), "{left_alone:?}");
    again.stop().await;

    migrated_by_a_newer_build(&site, false).await;
    for words in [&["engine"][..], &["db", "migrate"]] {
        let run = machine.run(words).await;
        assert!(
            run.code == Some(1) && run.err.contains("start the newer build"),
            "{run:?}"
        );
    }
}

#[tokio::test]
async fn a_migration_that_would_end_running_services_waits_for_a_word() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    // As if there had been a schema before the first.
    let undone = "UPDATE _sqlx_migrations SET version = 0";
    let mut connection = PgConnection::connect(&site.database_url).await.unwrap();
    sqlx::query(undone).execute(&mut connection).await.unwrap();
    let run = machine.run(&["db", "migrate"]).await;
    assert!(
        run.code == Some(2)
            && run.err.contains("--services-stopped")
            && run.err.contains("nothing was changed"),
        "{run:?}"
    );
    // With that word it begins, and finds a schema that it does not know.
    let run = machine.run(&["db", "migrate", "--services-stopped"]).await;
    assert!(
        run.code == Some(1) && run.err.contains("migration 0 was previously applied"),
        "{run:?}"
    );
    connection.close().await.unwrap();
}

async fn client_of(api: &mut Service, token: &str) -> Client {
    Client::new(&api.until_it_listens("the API listens").await, Some(token))
}

/// The order in which an upgrade goes, with a build of another day: each step leaves services of two builds side by side, and each fences.
#[tokio::test]
async fn services_of_an_older_build_and_of_this_one_fence_together() {
    let Some(build) = std::env::var_os("RINGFENCE_TEST_OLDER_BINARY") else {
        return tell("SKIPPED: RINGFENCE_TEST_OLDER_BINARY names no older build to go beside this one");
    };
    let site = Site::new(Ground::Distributed).await;
    let (new, token) = set_up(&site).await;
    let old = Machine::with_build(&new, build);
    let versions = (old.run(&["--version"]).await, new.run(&["--version"]).await);
    tell(&format!(
        "beside each other: {} and {}",
        versions.0.out.trim(),
        versions.1.out.trim()
    ));

    let mut old_api = start_api(&old);
    let by_old = client_of(&mut old_api, &token).await;
    let old_engine = start_engine(&old, "engine-1");
    let old_worker = start_worker(&old, "worker-1");
    let hosts = ["h1", "h2", "h3", "h4", "h5"];
    configure(&new, &by_old, &hosts, json!({})).await;
    fence(&by_old, "h1").await;

    // Both engines serve claims and results: which of them has which is not said.
    let new_engine = start_engine(&new, "engine-2");
    fence(&by_old, "h2").await;
    old_engine.stop().await;
    let mut new_api = start_api(&new);
    let by_new = client_of(&mut new_api, &token).await;
    fence(&by_new, "h3").await;
    old_worker.stop().await;
    let new_worker = start_worker(&new, "worker-2");
    fence(&by_old, "h4").await;
    old_api.stop().await;

    // And back: what one build has written, the other reads and goes on with.
    let mut old_api = start_api(&old);
    let by_old = client_of(&mut old_api, &token).await;
    new_engine.stop().await;
    let _old_engine = start_engine(&old, "engine-1");
    fence(&by_old, "h5").await;
    new_worker.stop().await;
    let _old_worker = start_worker(&old, "worker-1");
    for client in [&by_old, &by_new] {
        for host in hosts {
            assert_eq!(client.host(host).await["fencing_state"], "FENCED", "{host}");
        }
    }
    for host in hosts {
        by_old.seen(host, "UP").await.ok(200);
        let path = format!("/hosts/{host}/rejoin");
        let body = json!({ "reason": "upgrade", "boot_confirmed": true });
        by_new.post(&path, body).await.ok(202);
        by_old
            .until(&format!("/hosts/{host}"), |host| {
                host["fencing_state"] == "UNFENCED"
            })
            .await;
    }
}
