//! Engines and workers serve their metrics at the configured address, and nowhere else.

use ringfence_tests::{Client, Ground, Numbers, Service, Site, set_up, start_engine, start_worker};

/// The metrics of a service, at the address in its log.
async fn numbers_of(service: &mut Service) -> Numbers {
    let client = Client::new(&service.until_it_listens("the metrics listen").await, None);
    assert_eq!(client.get("/hosts").await.status, 404);
    Numbers::of(&client).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engines_and_workers_serve_their_metrics_at_the_configured_address() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, _) = set_up(&site).await;
    let mut silent = start_engine(&machine, "engine-0");
    silent.until_says(&["the engine runs"]).await;
    assert!(!silent.printed().contains("the metrics listen"));
    silent.stop().await;

    let machine = machine.set("RINGFENCE_METRICS_LISTEN", "127.0.0.1:0");
    let mut engine = start_engine(&machine, "engine-1");
    let numbers = numbers_of(&mut engine).await;
    assert_eq!(numbers.sum("ringfence_database_up", &[]), 1.0);
    assert!(numbers.has("ringfence_hosts") && !numbers.has("ringfence_worker_acting"));
    let mut worker = start_worker(&machine, "worker-1");
    let numbers = numbers_of(&mut worker).await;
    assert!(numbers.has("ringfence_worker_acting") && !numbers.has("ringfence_hosts"));
    assert!(numbers.has("ringfence_build_info"));
    engine.stop().await;
    worker.stop().await;
}
