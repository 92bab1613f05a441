//! `ringfence host import --cloud`.

use ringfence_tests::clouds_file::{Entry, write};
use ringfence_tests::{Client, Ground, Machine, Run, Service, Site, power_plan, set_up, start_api};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::cloud;

struct Desk {
    /// Dropped before the machine on which it runs.
    _api: Service,
    machine: Machine,
    token: String,
    url: String,
    file: String,
}

impl Desk {
    async fn import(&self, more: &[&str]) -> Run {
        let words = ["host", "import", "-o", "json", "--clouds-file", &self.file];
        let set = [
            ("RINGFENCE_URL", self.url.as_str()),
            ("RINGFENCE_TOKEN", &self.token),
        ];
        self.machine.run_with(&[&words, more].concat(), &set).await
    }
}

fn fates(run: &Run, of: &[&str]) -> Vec<String> {
    let hosts = run.json()["hosts"].as_array().unwrap().clone();
    let fate = |host: &Value| {
        format!(
            "{} {}",
            host["name"].as_str().unwrap(),
            host["result"].as_str().unwrap()
        )
    };
    let mut fates: Vec<String> = hosts.iter().map(fate).collect();
    // Another test may have left a host in the cloud.
    fates.retain(|fate| of.iter().any(|name| fate.contains(name)));
    fates.sort();
    fates
}

/// Begins a fence that no worker carries out.
async fn begin_fence(client: &Client, host: &str) {
    let method = json!({ "name": "power", "resource": "power", "driver": "simulated", "parameters": { "device": "none-${host.name}" } });
    client.post("/methods", method).await.ok(201);
    let plan = json!({ "name": "default", "stages": power_plan() });
    client.post("/plans", plan).await.ok(201);
    client.seen(host, "UNREACHABLE").await.ok(200);
    client.fence(host).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_of_two_clouds_with_equal_names_are_imported_once() {
    let cloud = cloud();
    let computes = block_in_place(|| cloud.computes(["imp-a", "imp-b"]).unwrap());
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let mut api = start_api(&machine);
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    let file = machine.file("clouds.yaml");
    write(&file, &[Entry::new("east", &cloud), Entry::new("west", &cloud)]);
    let desk = Desk {
        _api: api,
        machine,
        token,
        url,
        file: file.display().to_string(),
    };
    let of = ["imp-"];
    client.post("/segments", json!({ "name": "rack" })).await.ok(201);

    let refused = desk.import(&["--cloud", "east", "--segment", "nowhere"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.err.contains("--segment: is") && refused.err.contains("nowhere"),
        "{refused:?}"
    );
    let refused = desk.import(&["--cloud", "north"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("it has: east, west"), "{refused:?}");

    let dry = desk
        .import(&["--cloud", "east", "--segment", "rack", "--dry-run"])
        .await;
    assert_eq!(fates(&dry, &of), ["imp-a added", "imp-b added"], "{dry:?}");
    assert_eq!(client.get("/hosts/imp-a").await.status, 404);
    let run = desk.import(&["--cloud", "east", "--segment", "rack"]).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(fates(&run, &of), ["imp-a added", "imp-b added"]);
    let host = client.host("imp-a").await;
    assert_eq!(
        (
            &host["backend"],
            &host["cloud"],
            &host["segment"],
            &host["known_as"]
        ),
        (&json!("nova"), &json!("east"), &json!("rack"), &Value::Null)
    );

    let west = desk.import(&["--cloud", "west"]).await;
    assert_eq!(
        fates(&west, &of),
        ["west-imp-a added", "west-imp-b added"],
        "{west:?}"
    );
    let host = client.host("west-imp-b").await;
    assert_eq!(
        (&host["cloud"], &host["known_as"]),
        (&json!("west"), &json!("imp-b"))
    );
    for cloud in ["east", "west"] {
        let again = desk.import(&["--cloud", cloud]).await;
        assert!(
            fates(&again, &of).iter().all(|fate| fate.ends_with("present")),
            "{again:?}"
        );
    }

    let [a, b] = computes;
    block_in_place(|| cloud.remove(b).unwrap());
    let kept = desk.import(&["--cloud", "east"]).await;
    assert!(kept.err.contains("the cloud does not have imp-b"), "{kept:?}");
    assert_eq!(client.get("/hosts/imp-b").await.status, 200);
    let pruned = desk.import(&["--cloud", "east", "--prune"]).await;
    assert_eq!(
        fates(&pruned, &of),
        ["imp-a present", "imp-b removed"],
        "{pruned:?}"
    );
    assert_eq!(client.get("/hosts/imp-b").await.status, 404);

    // A host with a live operation is not removed, although its cloud lacks it.
    begin_fence(&client, "west-imp-b").await;
    let pruned = desk.import(&["--cloud", "west", "--prune"]).await;
    assert_eq!(pruned.code, Some(1), "{pruned:?}");
    assert_eq!(
        fates(&pruned, &of),
        ["west-imp-a present", "west-imp-b failed"],
        "{pruned:?}"
    );
    assert!(pruned.out.contains("fence"), "{pruned:?}");
    assert_eq!(client.get("/hosts/west-imp-b").await.status, 200);
    block_in_place(|| cloud.remove(a).unwrap());
}
