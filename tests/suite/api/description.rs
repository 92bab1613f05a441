//! The API conforms to openapi/openapi.json, and refuses what the description does not allow: Schemathesis makes up the requests.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use ringfence_api::Role;
use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::json;

/// A run of Schemathesis makes equal requests every time. It fails after so many seconds.
const AT_MOST_S: u64 = 240;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_conforms_to_its_description() {
    let stack = Stack::start(Ground::Standalone).await;
    stack.plan(power_plan()).await;
    // Schemathesis makes up names of one character first: with these hosts, segments and plans some requests find something.
    for name in ["0", "A"] {
        stack.client.post("/hosts", json!({ "name": name })).await.ok(201);
        stack
            .client
            .post("/segments", json!({ "name": name }))
            .await
            .ok(201);
        let plan = json!({ "name": name, "scope": { "kind": "host", "value": name }, "stages": [] });
        stack.client.post("/plans", plan).await.ok(201);
    }
    run_schemathesis(&stack, Role::Admin, "examples,coverage,fuzzing").await;
    // A reader gets 403 for most requests: few of them suffice.
    run_schemathesis(&stack, Role::Reader, "examples,fuzzing").await;
    stack.stop().await;
}

async fn run_schemathesis(stack: &Stack, role: Role, phases: &str) {
    let program = std::env::var_os("RINGFENCE_TEST_SCHEMATHESIS").unwrap_or_else(|| {
        panic!("RINGFENCE_TEST_SCHEMATHESIS is not set; run the tests with `cargo xtask test`")
    });
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let token = stack.as_role(role).token().unwrap().to_owned();
    let mut command = tokio::process::Command::new(program);
    command
        .arg("--config-file")
        .arg(tests.join("suite/api/schemathesis.toml"))
        .arg("run")
        .arg(tests.join("../openapi/openapi.json"))
        .args(["--url", stack.client.base(), "--no-color", "--phases", phases])
        .args(["--header", &format!("X-Auth-Token: {token}")])
        .current_dir(stack.site.dir.path())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let done = tokio::time::timeout(Duration::from_secs(AT_MOST_S), command.output()).await;
    let done = done
        .unwrap_or_else(|_| panic!("Schemathesis did not end within {AT_MOST_S} s"))
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "as {}: {}\n{}",
        role.as_str(),
        said,
        String::from_utf8_lossy(&done.stderr)
    );
    // A run that made no request has checked nothing.
    assert!(said.contains(" passed"), "{said}");
}
