//! The world is stored across processes.

use reqwest::StatusCode;
use ringfence_simulators::{Simulators, World};
use serde_json::json;

use crate::Lab;

#[tokio::test]
async fn restarted_simulators_have_their_former_state() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("world.json");
    let lab = Lab::start(Some(file.clone()));
    lab.put("/devices/a/power/fault", json!({"fault": "lie", "times": 2}))
        .await;
    lab.put("/devices/a/power", json!({"state": "off"})).await;
    lab.put("/devices/a/storage", json!({"state": "fenced"})).await;
    let before = lab.handle.world();
    lab.handle.stop().await;

    let lab = Lab::start(Some(file));

    assert_eq!(lab.handle.world(), before);
    assert_eq!(lab.get("/devices/a/storage").await.1, json!({"state": "fenced"}));
    lab.put("/devices/a/power", json!({"state": "off"})).await;
    assert_eq!(lab.get("/devices/a/power").await.1, json!({"state": "on"}));
    lab.put("/devices/a/power", json!({"state": "off"})).await;
    assert_eq!(lab.get("/devices/a/power").await.1, json!({"state": "off"}));
}

#[tokio::test]
async fn a_change_that_cannot_be_stored_does_not_happen() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let lab = Lab::start(Some(inner.join("world.json")));
    std::fs::remove_dir_all(&inner).unwrap();

    let answer = lab.put("/devices/a/power", json!({"state": "off"})).await;

    assert_eq!(answer, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(lab.handle.may_write("a"));
}

#[tokio::test]
async fn a_file_of_another_kind_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("world.json");
    std::fs::write(&file, "{\"hosts\": 3}").unwrap();

    let started = Simulators::start(([127, 0, 0, 1], 0).into(), Some(file.clone()), World::demo());

    assert!(started.is_err_and(|error| error.to_string().ends_with("does not hold the simulators' state")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"hosts\": 3}");
}
