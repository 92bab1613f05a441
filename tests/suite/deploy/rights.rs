//! The broker's users in the compose file have the rights that their services need.

use std::path::Path;

use ringfence_lab::RabbitMq;
use ringfence_tests::{Ground, Machine, Run, Site, eventually};

use super::{accepted, secrets};

/// The machine of one service, with the configuration file that is made for it.
fn machine(service: &str, made: &Path, site: &Site, broker: &RabbitMq) -> Machine {
    let path = |name: &str| made.join(name).display().to_string();
    let password = std::fs::read_to_string(made.join(format!("rabbitmq-{service}.password"))).unwrap();
    let bus = format!(
        "amqp://ringfence-{service}:{password}@127.0.0.1:{}/ringfence",
        broker.port()
    );
    let machine = Machine::new()
        .set("RINGFENCE_CONFIG", path(&format!("{service}.toml")))
        .set("RINGFENCE_BUS_URL", bus)
        .set("RINGFENCE_BUS_KEYS_FILE", path("bus-keys"))
        .set("RINGFENCE_BUS_CA_FILE", path("ca.pem"))
        .set("RINGFENCE_LOG_FORMAT", "text");
    match service {
        "worker" => machine.set("RINGFENCE_METRICS_LISTEN", "127.0.0.1:0"),
        "engine" => machine
            .set("RINGFENCE_DATABASE_URL", &site.database_url)
            .set("RINGFENCE_WEBHOOKS_KEYS_FILE", path("webhook-keys"))
            .set("RINGFENCE_METRICS_LISTEN", "127.0.0.1:0"),
        _ => machine
            .set("RINGFENCE_DATABASE_URL", &site.database_url)
            .set("RINGFENCE_WEBHOOKS_KEYS_FILE", path("webhook-keys"))
            .set("RINGFENCE_API_TOKENS_FILE", path("tokens.toml"))
            .set("RINGFENCE_API_CERTIFICATE_FILE", path("api.pem"))
            .set("RINGFENCE_API_KEY_FILE", path("api.key")),
    }
}

const PLAN: &str = r#"
name = "h1"
scope = { kind = "host", value = "h1" }
[[stages]]
[[stages.tasks]]
kind = "power.off"
levels = [{ level = 1, methods = ["power"] }]
"#;

#[tokio::test]
async fn a_host_is_fenced_by_services_with_the_least_rights_on_the_broker() {
    let home = Machine::new();
    let made = secrets(&home);
    let definitions = std::fs::read_to_string(made.join("rabbitmq.definitions.json")).unwrap();
    let broker = tokio::task::spawn_blocking(|| RabbitMq::start_with_definitions(definitions).unwrap())
        .await
        .unwrap();
    let site = Site::new(Ground::Distributed).await;
    let [api, engine, worker] =
        ["api", "engine", "worker"].map(|service| machine(service, &made, &site, &broker));
    accepted(&api.run(&["db", "migrate"]).await);
    let mut serving = api.start("api", &["api", "--listen", "127.0.0.1:0"]);
    let url = serving
        .until_it_listens("the API listens")
        .await
        .replace("http://127.0.0.1", "https://localhost");
    let mut telling = engine.start("engine", &["engine", "--name", "engine-1"]);
    let mut acting = worker.start("worker", &["worker", "--name", "worker-1"]);
    let operator = Machine::new()
        .set("RINGFENCE_URL", url)
        .set("RINGFENCE_CA_FILE", made.join("ca.pem").display().to_string())
        .set(
            "RINGFENCE_TOKEN_FILE",
            made.join("admin.token").display().to_string(),
        );
    let device = home.file("h1");
    std::fs::write(&device, "on").unwrap();
    let status_file = format!("status_file={}", device.display());
    eventually(async || {
        let words = [
            "method",
            "add",
            "power",
            "--resource",
            "power",
            "--driver",
            "fence-agent",
        ];
        let parameters = ["-p", "agent=fence_dummy", "-p", &status_file];
        operator.run(&[&words[..], &parameters].concat()).await.code == Some(0)
    })
    .await;
    let plan = home.file("plan.toml");
    std::fs::write(&plan, PLAN).unwrap();
    let plan = plan.display().to_string();
    accepted(&operator.run(&["plan", "add", "--file", &plan]).await);
    accepted(&operator.run(&["host", "add", "h1"]).await);
    accepted(&operator.run(&["host", "seen", "h1", "UNREACHABLE"]).await);
    let fenced = operator
        .run(&["host", "fence", "h1", "--reason", "test", "--wait"])
        .await;
    assert!(
        fenced.code == Some(0) && fenced.out.contains("FENCED"),
        "{fenced:?}"
    );
    accepted(&operator.run(&["method", "check", "power"]).await);
    // The API's user may read dead letters, as an operator does with the API's configuration.
    accepted(&api.run(&["dead-letter", "list"]).await);
    // A worker's user may not read dead letters.
    let refused: Run = worker.run(&["dead-letter", "list"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for service in [&mut serving, &mut telling, &mut acting] {
        let printed = service.printed();
        assert!(
            !printed.contains("ACCESS_REFUSED") && !printed.contains("ACCESS-REFUSED"),
            "{printed}"
        );
    }
}
