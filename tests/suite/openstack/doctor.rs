//! The findings of `ringfence doctor` about clouds.

use ringfence_lab::User;
use ringfence_tests::clouds_file::{Entry, write};
use ringfence_tests::{Client, Ground, Machine, Site, set_up, start_api};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::block_in_place;

use super::plant::cloud;

/// The findings about clouds, as `state: found -> remedy`.
async fn examine(machine: &Machine, more: &[(&str, &str)]) -> String {
    let asked = machine.run_with(&["doctor", "-o", "json"], more).await;
    let report: Value = serde_json::from_str(&asked.out).unwrap_or_else(|_| panic!("{asked:?}"));
    assert!(!format!("{asked:?}").contains("hushhush"), "{asked:?}");
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let of_clouds = findings.filter(|finding| finding["part"] == "platforms" || finding["part"] == "queues");
    let lines = of_clouds.map(|finding| {
        let [state, found, remedy] = ["state", "found", "remedy"].map(|key| text(finding, key));
        format!("{state}: {found} -> {remedy}\n")
    });
    lines.collect()
}

#[track_caller]
fn says(report: &str, state: &str, found: &str, remedy: &str) {
    let is_it = |line: &str| line.starts_with(state) && line.contains(found) && line.contains(remedy);
    assert!(
        report.lines().any(is_it),
        "no {state} {found:?} -> {remedy:?} in\n{report}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_names_each_problem_of_a_cloud_and_its_remedy() {
    let cloud = cloud();
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    let hangs = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hanging = hangs.local_addr().unwrap().to_string();
    let file = machine.file("clouds.yaml");
    let at = |name| Entry::new(name, &cloud);
    write(
        &file,
        &[
            at("good"),
            at("locked").password("hushhush"),
            at("reader").user(User::FencingReader.name()),
            at("closed").keystone_at("127.0.0.1:1"),
            at("hanging").keystone_at(&hanging),
            at("elsewhere").region("nowhere"),
            at("dead").nova_at("http://127.0.0.1:1/v2.1"),
        ],
    );
    let report = examine(
        &machine,
        &[
            (
                "RINGFENCE_OPENSTACK_CLOUDS",
                "good,locked,reader,closed,hanging,elsewhere,dead,missing",
            ),
            ("RINGFENCE_OPENSTACK_CLOUDS_FILE", file.to_str().unwrap()),
            ("RINGFENCE_OPENSTACK_TIMEOUT_MS", "3000"),
        ],
    )
    .await;
    says(
        &report,
        "ok",
        "good: Nova has versions 2.1 to 2.93, and 2.93 is used",
        "",
    );
    says(&report, "ok", "good: all calls are allowed", "");
    says(
        &report,
        "failed",
        "good: nova-api has no answer of Ringfence's scheduler hook",
        "start the hook",
    );
    says(
        &report,
        "failed",
        "keystone of cloud locked refuses the credentials",
        "mend user, password",
    );
    for call in [
        "PUT os-services",
        "GET os-services",
        "GET servers",
        "GET os-migrations",
    ] {
        says(&report, "failed", call, "openstack role add");
    }
    says(
        &report,
        "failed",
        "keystone of cloud closed does not answer",
        "mend auth_url",
    );
    says(
        &report,
        "failed",
        "keystone of cloud hanging has not answered within 3 s",
        "mend auth_url",
    );
    says(
        &report,
        "failed",
        "cloud elsewhere has no nova",
        "mend region_name",
    );
    says(
        &report,
        "failed",
        "nova of cloud dead does not answer",
        "the service catalogue",
    );
    says(
        &report,
        "failed",
        "has no entry of that name; it has: closed, dead, elsewhere, good, hanging, locked, reader",
        "openstack.clouds_file",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_names_hosts_that_only_one_side_has_and_hosts_that_no_engine_watches() {
    let cloud = cloud();
    let _computes = block_in_place(|| cloud.computes(["doc-a", "doc-b"]).unwrap());
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let file = machine.file("clouds.yaml");
    write(&file, &[Entry::new("lab", &cloud)]);
    let set = [
        ("RINGFENCE_OPENSTACK_CLOUDS", "lab"),
        ("RINGFENCE_OPENSTACK_CLOUDS_FILE", file.to_str().unwrap()),
    ];
    let mut api = start_api(&machine);
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    for (name, known_as, of) in [
        ("doc-a", "doc-a", Some("lab")),
        ("ghost", "ghost", Some("lab")),
        ("far", "far", Some("moon")),
        ("homeless", "homeless", None),
    ] {
        let host = json!({ "name": name, "backend": "nova", "cloud": of, "known_as": known_as });
        client.post("/hosts", host).await.ok(201);
    }
    let report = examine(&machine, &set).await;
    says(
        &report,
        "failed",
        "nova:lab does not know ghost",
        "ringfence host set HOST --known-as NAME",
    );
    says(
        &report,
        "warning",
        "nova:lab: Ringfence does not have doc-b",
        "ringfence host import --cloud lab",
    );
    says(&report, "warning", "no cloud is named for homeless", "--cloud");
    says(
        &report,
        "failed",
        "moon: no engine watches far",
        "start an engine with moon",
    );
    says(
        &report,
        "failed",
        "lab: no engine watches doc-a, ghost",
        "start an engine with lab",
    );
    says(
        &report,
        "failed",
        "tasks.workloads.default: no service has ever served it",
        "start a worker with default in worker.zones and workloads in worker.resources",
    );

    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    let mut engine = machine.start_with("engine-1", &["engine", "--name", "engine-1"], &set);
    engine.until_says(&["the platform is watched"]).await;
    let report = examine(&machine, &set).await;
    assert!(!report.contains("lab: no engine watches"), "{report}");
    says(
        &report,
        "warning",
        "has mode 0640, and it holds a password",
        "chmod 600",
    );
    let report = examine(&machine, &[]).await;
    says(
        &report,
        "warning",
        "lab: not in openstack.clouds here",
        "name it if",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_tries_the_services_of_a_cloud_that_plans_use() {
    let cloud = cloud();
    // Neutron has agents only on hosts that exist.
    let _computes = block_in_place(|| cloud.computes(["doc-c"]).unwrap());
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let file = machine.file("clouds.yaml");
    let of_admin = Entry::new("halfway", &cloud)
        .user(User::Admin.name())
        .project(User::Admin.project());
    write(&file, &[Entry::new("good", &cloud), of_admin]);
    let set = [
        ("RINGFENCE_OPENSTACK_CLOUDS", "good,halfway"),
        ("RINGFENCE_OPENSTACK_CLOUDS_FILE", file.to_str().unwrap()),
    ];
    let mut api = start_api(&machine);
    let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
    for (name, resource, driver) in [("disks", "storage", "cinder"), ("ports", "network", "neutron")] {
        let method = json!({ "name": name, "resource": resource, "driver": driver });
        client.post("/methods", method).await.ok(201);
    }
    let task =
        |kind: &str, method: &str| json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] });
    let stages = json!([{ "tasks": [task("storage.fence", "disks"), task("network.fence", "ports")] }]);
    let plan = json!({ "name": "default", "stages": stages, "sufficient_sets": [["operator"]] });
    client.post("/plans", plan).await.ok(201);
    let report = examine(&machine, &set).await;
    assert!(
        !report.contains("the driver"),
        "nothing is fenced by them: {report}"
    );

    for name in ["good", "halfway"] {
        let host = json!({ "name": format!("in-{name}"), "backend": "nova", "cloud": name });
        client.post("/hosts", host).await.ok(201);
    }
    let report = examine(&machine, &set).await;
    says(
        &report,
        "ok",
        "good: the driver cinder is allowed what it needs",
        "",
    );
    says(
        &report,
        "ok",
        "good: the driver neutron is allowed what it needs",
        "",
    );
    says(
        &report,
        "ok",
        "halfway: the driver neutron is allowed what it needs",
        "",
    );
    says(
        &report,
        "failed",
        "the driver cinder could not disconnect a host (DELETE attachments): cinder of cloud halfway refuses the credentials: \
         the role service is needed beside admin, and the entry's user has ",
        "with the roles admin and service",
    );
}
