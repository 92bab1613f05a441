use crate::site::{play, policy, silent, site};
use ringfence_simulation::Assumptions;
use serde_json::json;
#[tokio::test(flavor = "multi_thread")]
async fn measure() {
    for (hosts, fencing, minutes) in [
        (10, json!({ "at_once": 1 }), 60),
        (200, json!({ "at_once": 2 }), 60),
        (200, json!({"groups":[{"at_most_out":3}]}), 60),
        (200, json!({"groups":[{"at_most_out":3}]}), 120),
    ] {
        let site = site(hosts, policy(fencing.clone(), json!({})));
        let begun = std::time::Instant::now();
        let happenings = (1..=hosts)
            .map(|nth| silent(i64::try_from(nth).unwrap(), nth))
            .collect();
        let outcome = play(&site, minutes, happenings, Assumptions::default()).await;
        println!(
            "{hosts} {fencing} {minutes} min: {:?} timeline {}",
            begun.elapsed(),
            outcome.timeline.len()
        );
    }
}
