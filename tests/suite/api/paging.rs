//! Pages of lists.

use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::json;

crate::on_both_grounds!(listings_are_paged_sorted_and_filtered,);

async fn listings_are_paged_sorted_and_filtered(ground: Ground) {
    let site = Site::new(ground).await;
    let stack = Stack::start_with(
        site,
        StackOptions {
            hosts: 7,
            ..StackOptions::default()
        },
    )
    .await;
    let client = &stack.client;
    let mut names = Vec::new();
    let mut path = "/hosts?limit=3&sort=name:desc".to_owned();
    loop {
        let page = client.get(&path).await.ok(200);
        names.extend(
            page["hosts"]
                .as_array()
                .unwrap()
                .iter()
                .map(|h| h["name"].as_str().unwrap().to_owned()),
        );
        match page["links"][0]["href"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(names, ["h7", "h6", "h5", "h4", "h3", "h2", "h1"]);
    client.seen("h2", "UP").await.ok(200);
    let up = client
        .get("/hosts?failure_state=UP&segment=default&backend=none")
        .await
        .ok(200);
    assert_eq!(up["hosts"].as_array().unwrap().len(), 1);
    assert_eq!(up["hosts"][0]["name"], "h2");
    assert_eq!(
        client.get("/hosts?fencing_state=FENCED").await.ok(200)["hosts"],
        json!([])
    );
    stack.stop().await;
}
