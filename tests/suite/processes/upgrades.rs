//! Services and `db migrate` on the schema of another build.

use ringfence_tests::{Ground, Machine, Site, set_up};
use sqlx::{Connection, PgConnection};

/// Changes the number of the database's only migration.
async fn number_the_schema(site: &Site, version: i64) {
    let mut connection = PgConnection::connect(&site.database_url).await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET version = $1")
        .bind(version)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn refused(machine: &Machine, words: &[&str], code: i32, text: &str) {
    let run = machine.run(words).await;
    assert!(run.code == Some(code) && run.err.contains(text), "{run:?}");
}

#[tokio::test]
async fn no_service_of_an_older_build_starts_on_a_newer_schema() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    number_the_schema(&site, 9999).await;
    for words in [&["api"][..], &["engine"], &["db", "migrate"]] {
        refused(&machine, words, 1, "start the newer build").await;
    }
    let stopped = ["db", "migrate", "--services-stopped"];
    refused(&machine, &stopped, 1, "start the newer build").await;
}

#[tokio::test]
async fn an_older_schema_is_migrated_only_with_the_option_services_stopped() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    number_the_schema(&site, 0).await;
    refused(&machine, &["engine"], 1, "run `ringfence db migrate`").await;
    refused(&machine, &["db", "migrate"], 2, "nothing was changed").await;
    refused(&machine, &["db", "migrate"], 2, "--services-stopped").await;
    // The migration begins, and finds a schema that no build has made.
    let stopped = ["db", "migrate", "--services-stopped"];
    refused(&machine, &stopped, 1, "migration 0 was previously applied").await;
}
