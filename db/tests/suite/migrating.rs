//! Schemas: their migration, and the error of a service on the schema of another build.

use ringfence_db::{Database, DbError, SchemaState, migrate, schema_state};

use crate::rig::Rig;

crate::stories!(migrating:
    a_second_migration_of_a_database_changes_nothing,
    several_services_can_migrate_concurrently,
    several_tasks_of_one_service_can_migrate_concurrently,
    a_service_does_not_start_on_an_empty_database,
    a_service_does_not_start_on_an_older_schema,
    a_service_does_not_touch_a_newer_schema,
    a_failed_migration_leaves_no_changes,
);

async fn refusal(db: &Database) -> String {
    let state = schema_state(db).await.unwrap();
    match state.require_current(db.address()) {
        Err(DbError::Schema(text)) => text,
        other => panic!("{state:?} was taken: {other:?}"),
    }
}

async fn a_second_migration_of_a_database_changes_nothing(rig: &Rig) {
    let rig = rig.fresh().await;
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Missing);
    migrate(&rig.db).await.unwrap();
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Current);
    let (_, host) = crate::site::one_host(&rig.db).await;
    migrate(&rig.db).await.unwrap();
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Current);
    SchemaState::Current.require_current(rig.db.address()).unwrap();
    assert!(
        ringfence_db::host_row(&mut rig.db.reader(), &host.name)
            .await
            .unwrap()
            .is_some()
    );
    rig.end().await;
}

async fn several_services_can_migrate_concurrently(rig: &Rig) {
    let rig = rig.fresh().await;
    let services: Vec<_> = (0..6)
        .map(|_| {
            let url = rig.url.clone();
            tokio::spawn(async move {
                let db = Database::open(&url, 2).await?;
                let done = migrate(&db).await;
                db.close().await;
                done
            })
        })
        .collect();
    for service in services {
        service.await.unwrap().unwrap();
    }
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Current);
    rig.end().await;
}

async fn several_tasks_of_one_service_can_migrate_concurrently(rig: &Rig) {
    let rig = rig.fresh().await;
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let db = rig.db.clone();
            tokio::spawn(async move { migrate(&db).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Current);
    rig.end().await;
}

async fn a_service_does_not_start_on_an_empty_database(rig: &Rig) {
    let rig = rig.fresh().await;
    let text = refusal(&rig.db).await;
    assert!(
        text.contains("no schema yet") && text.contains("`ringfence db migrate`"),
        "{text}"
    );
    assert!(text.contains(rig.db.address()), "{text}");
    rig.end().await;
}

async fn a_service_does_not_start_on_an_older_schema(rig: &Rig) {
    rig.past("UPDATE _sqlx_migrations SET version = version - 1000")
        .await
        .unwrap();
    let state = schema_state(&rig.db).await.unwrap();
    assert!(
        matches!(state, SchemaState::Older { found, needed } if found < needed),
        "{state:?}"
    );
    let text = refusal(&rig.db).await;
    assert!(
        text.contains("this build needs") && text.contains("`ringfence db migrate`"),
        "{text}"
    );
}

async fn a_service_does_not_touch_a_newer_schema(rig: &Rig) {
    rig.past(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'from the future', true, '', 0)",
    )
    .await
    .unwrap();
    let state = schema_state(&rig.db).await.unwrap();
    assert!(
        matches!(state, SchemaState::Newer { found: 9999, .. }),
        "{state:?}"
    );
    let text = refusal(&rig.db).await;
    assert!(
        text.contains("9999") && text.contains("start the newer build"),
        "{text}"
    );
    assert!(
        !text.contains("migrate"),
        "the error recommends a migration, which would not help: {text}"
    );
    assert!(matches!(migrate(&rig.db).await, Err(DbError::Schema(_))));
}

async fn a_failed_migration_leaves_no_changes(rig: &Rig) {
    let rig = rig.fresh().await;
    rig.past("CREATE TABLE audit (something_else text)")
        .await
        .unwrap();
    assert!(matches!(migrate(&rig.db).await, Err(DbError::Migrate(_))));
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Missing);
    rig.past("DROP TABLE audit").await.unwrap();
    migrate(&rig.db).await.unwrap();
    assert_eq!(schema_state(&rig.db).await.unwrap(), SchemaState::Current);
    rig.end().await;
}
