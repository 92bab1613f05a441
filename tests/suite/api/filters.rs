//! Filters and sort orders of lists.

use ringfence_tests::{Client, Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    hosts_are_filtered_by_operators,
    operations_are_filtered_by_operators,
    every_sort_order_lists_each_item_once,
    invalid_filters_are_refused,
);

fn names<'a>(list: &'a Value, noun: &str, field: &str) -> Vec<&'a str> {
    let rows = list[noun].as_array().unwrap();
    rows.iter().map(|row| row[field].as_str().unwrap()).collect()
}

async fn site(ground: Ground) -> Stack {
    let options = StackOptions {
        hosts: 5,
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(ground).await, options).await
}

async fn hosts(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("/hosts?{query}")).await.ok(200);
    names(&list, "hosts", "name")
        .iter()
        .map(ToString::to_string)
        .collect()
}

async fn hosts_are_filtered_by_operators(ground: Ground) {
    let stack = site(ground).await;
    let client = &stack.client;
    client
        .post("/segments", json!({ "name": "rack-1" }))
        .await
        .ok(201);
    client
        .patch("/hosts/h4", json!({ "type": "compute", "segment": "rack-1" }))
        .await
        .ok(200);
    client.seen("h2", "UP").await.ok(200);
    client.seen("h3", "UNREACHABLE").await.ok(200);
    client
        .post("/plans", json!({ "name": "by-hand", "stages": [] }))
        .await
        .ok(201);
    client.fence("h3").await;
    let word = json!({ "generation": 1, "reason": "pulled the plug" });
    client.post("/hosts/h3/confirm-fenced", word).await.ok(200);
    let h3 = client.host("h3").await;
    let (added, fenced) = (
        h3["created_at"].as_str().unwrap(),
        h3["fenced_at"].as_str().unwrap(),
    );
    let rack = client.get("/segments/rack-1").await.ok(200)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for (query, expected) in [
        ("name=h2", "h2"),
        ("name=in:h1,h3,h9", "h1 h3"),
        ("name=nin:h1,h3", "h2 h4 h5"),
        ("name=neq:h5", "h1 h2 h3 h4"),
        ("name=%22h2%22", "h2"),
        ("name=in:%22h2%22,h3", "h2 h3"),
        ("name=in:h1,h2,h3&name=neq:h2", "h1 h3"),
        ("fencing_state=neq:FENCED", "h1 h2 h4 h5"),
        ("failure_state=in:UP,UNREACHABLE", "h2 h3"),
        ("failure_state=nin:UP,UNREACHABLE", "h1 h4 h5"),
        ("type=compute", "h4"),
        ("type=neq:compute", "h1 h2 h3 h5"),
        ("segment=in:rack-1", "h4"),
        (
            &format!("segment=in:{},default", rack.to_uppercase()),
            "h1 h2 h3 h4 h5",
        ),
        ("segment=neq:rack-1", "h1 h2 h3 h5"),
        ("zone=default&backend=none&generation=0", "h1 h2 h4 h5"),
        ("generation=gte:1", "h3"),
        ("generation=gt:1", ""),
        ("generation=lt:1", "h1 h2 h4 h5"),
        ("generation=lte:1", "h1 h2 h3 h4 h5"),
        (&format!("created_at=gte:{added}"), "h3 h4 h5"),
        (&format!("created_at=gt:{added}"), "h4 h5"),
        (&format!("created_at=lt:{added}"), "h1 h2"),
        (&format!("created_at=lte:{added}"), "h1 h2 h3"),
        (&format!("created_at={added}"), "h3"),
        (&format!("created_at=gte:{added}&created_at=neq:{added}"), "h4 h5"),
        (&format!("fenced_at=gte:{fenced}"), "h3"),
        ("fenced_at=lt:2199-01-01T00:00:00Z", "h3"),
    ] {
        assert_eq!(hosts(client, query).await.join(" "), expected, "{query}");
    }
    stack.stop().await;
}

async fn operations_are_filtered_by_operators(ground: Ground) {
    let stack = site(ground).await;
    let client = &stack.client;
    client
        .post("/plans", json!({ "name": "by-hand", "stages": [] }))
        .await
        .ok(201);
    for host in ["h1", "h2", "h3"] {
        client.seen(host, "UNREACHABLE").await.ok(200);
        let operation = client.fence(host).await;
        client.until_settled(&operation).await;
    }
    let first = client.get("/operations?host=h1").await.ok(200)["operations"][0].clone();
    let id = first["id"].as_str().unwrap();
    let because = json!({ "reason": "test" });
    client
        .post(&format!("/operations/{id}/cancel"), because)
        .await
        .ok(200);
    let began = first["created_at"].as_str().unwrap();
    for (query, expected) in [
        ("host=in:h1,h2", "h2 h1"),
        ("host=neq:h1", "h3 h2"),
        ("status=in:running,needs_operator", "h3 h2"),
        ("status=neq:needs_operator", "h1"),
        ("kind=nin:rejoin", "h3 h2 h1"),
        ("kind=nin:rejoin&sort=created_at", "h1 h2 h3"),
        ("sort=updated_at:desc,created_at", "h1 h3 h2"),
        (&format!("created_at=gt:{began}"), "h3 h2"),
        ("finished_at=gte:2026-01-01T00:00:00Z", "h1"),
        ("generation=1", "h3 h2 h1"),
    ] {
        let list = client.get(&format!("/operations?{query}")).await.ok(200);
        assert_eq!(names(&list, "operations", "host").join(" "), expected, "{query}");
    }
    let unknown = client.get("/operations?host=in:h1,h9").await;
    refused(&unknown, 404, "fencing.host.not_found", &["h9"]);
    stack.stop().await;
}

async fn every_sort_order_lists_each_item_once(ground: Ground) {
    let stack = site(ground).await;
    let client = &stack.client;
    for order in [
        "name",
        "name:desc,created_at",
        "created_at:asc,name:desc",
        "updated_at:desc,created_at:asc,name",
        "created_at:desc,updated_at:asc",
    ] {
        let whole = hosts(client, &format!("sort={order}")).await;
        assert_eq!(whole.len(), 5, "{order}");
        let mut seen: Vec<String> = Vec::new();
        let mut path = format!("/hosts?limit=2&sort={order}");
        loop {
            let page = client.get(&path).await.ok(200);
            seen.extend(names(&page, "hosts", "name").iter().map(ToString::to_string));
            let links = page["links"].as_array().unwrap();
            match links.iter().find(|link| link["rel"] == "next") {
                Some(next) => path = next["href"].as_str().unwrap().to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, whole, "{order}");
    }
    stack.stop().await;
}

async fn invalid_filters_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let cases: &[(&str, &[&str])] = &[
        (
            "name=like:h",
            &["name", "like:", "in:, nin:, neq:", "double quotes"],
        ),
        ("name=gt:h", &["name", "gt:"]),
        ("name=h1,h2", &["name", "h1,h2", "in:"]),
        ("name=in:", &["name", "1 to 255"]),
        ("name=in:%22h1", &["name", "not closed"]),
        ("fencing_state=in:FENCED,fenced", &["fencing_state", "UNFENCED"]),
        ("failure_state=gt:UP", &["failure_state", "gt:"]),
        ("generation=gte:-1", &["generation", "-1", "0 or more", "lte:"]),
        ("generation=99999999999999999999", &["generation"]),
        (
            "created_at=gte:yesterday",
            &["created_at", "yesterday", "2026-01-31T12:00:00Z"],
        ),
        ("created_at=between:1", &["created_at", "between:"]),
        ("sort=name,name", &["sort", "each once"]),
        ("sort=", &["sort", "updated_at"]),
        ("sort=name:asc:desc", &["sort"]),
        ("limit=1&limit=2", &["limit", "more than once"]),
        ("like=h", &["like", "fencing_state"]),
    ];
    for (query, words) in cases {
        let answer = client.get(&format!("/hosts?{query}")).await;
        refused(&answer, 400, "fencing.request.invalid", words);
    }
    let by_name = client.get("/operations?sort=name").await;
    refused(&by_name, 400, "fencing.request.invalid", &["sort", "created_at"]);
    stack.stop().await;
}
