//! The agent's answers and its errors.

use std::process::Command;

use quick_xml::events::Event;
use serde_json::json;

use super::{Place, agent, failed, proofs, write};

#[test]
fn the_metadata_of_the_agent_is_well_formed_and_complete() {
    let done = Command::new(agent()).args(["-o", "metadata"]).output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{text}");
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut parameters, mut actions) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) => {
                let name = tag.try_get_attribute("name").unwrap();
                let name = name.map(|name| name.value.into_owned());
                match tag.name().as_ref() {
                    "parameter" => parameters.push(name.unwrap()),
                    "action" => {
                        let automatic = tag.try_get_attribute("automatic").unwrap();
                        assert!(automatic.is_none_or(|value| value.value.as_ref() == "0"));
                        actions.push(name.unwrap());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    for wanted in ["action", "plug", "mode", "url", "token_file"] {
        assert!(parameters.iter().any(|name| name == wanted), "{parameters:?}");
    }
    let expected = [
        "on",
        "off",
        "status",
        "list",
        "monitor",
        "metadata",
        "validate-all",
    ];
    assert_eq!(actions, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_answers_for_ringfence_and_ignores_unknown_parameters() {
    let place = Place::start().await;
    place.host("h1", "UNREACHABLE").await;
    for looks in ["monitor", "validate-all"] {
        let done = place
            .call(&[("action", looks), ("colour", "red"), ("#", "1")])
            .await;
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let listed = place.call(&[("action", "list")]).await;
    assert_eq!(
        (listed.code, listed.out.as_str()),
        (Some(0), "h1,\n"),
        "{listed:?}"
    );
    let status = async || place.call(&[("action", "status"), ("nodename", "h1")]).await;
    assert_eq!(status().await.code, Some(0));

    let off = [("action", "off"), ("plug", "h1"), ("mode", "confirm")];
    let done = place.call(&off).await;
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "h1: FENCED\n"),
        "{done:?}"
    );
    let host = place.client.host("h1").await;
    assert_eq!(proofs(&host), [("operator".to_owned(), "pacemaker".to_owned())]);
    assert!(
        host["proofs"]
            .to_string()
            .contains("switched off by Pacemaker's power device")
    );
    assert_eq!(status().await.code, Some(2));

    // A second off, with the node's name beside Ringfence's name of the host.
    let again = place
        .call(&[("action", "off"), ("port", "h1"), ("nodename", "node-1")])
        .await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(place.client.host("h1").await["generation"], host["generation"]);

    // A host that is seen UP has status 0 (on), although its fence was confirmed.
    place.client.seen("h1", "UP").await.ok(200);
    assert!(place.is_fenced("h1").await);
    assert_eq!(status().await.code, Some(0));
    let refused = place.call(&[&off[..], &[("timeout", "5")]].concat()).await;
    failed(&refused, &["seen UP"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_fails_with_a_reason_and_never_reports_success() {
    let place = Place::start().await;
    place.host("h1", "UNREACHABLE").await;
    let wrong = write(&place.machine, "wrong.token", "rf_of-another-site\n");
    let onlooker = place.file("onlooker.token");
    let no_role = "has to hold a token of the role service";
    for action in ["off", "on", "status", "monitor", "list"] {
        let with = |name, value| {
            [
                ("action", action),
                ("plug", "h1"),
                ("timeout", "5"),
                (name, value),
            ]
        };
        failed(&place.call(&with("token_file", &wrong)).await, &[no_role]);
        failed(
            &place.call(&with("token_file", "/nowhere")).await,
            &["/nowhere", no_role],
        );
        failed(
            &place.call(&with("url", "http://127.0.0.1:1")).await,
            &["cannot be reached", "check that the API runs"],
        );
        failed(&place.call(&with("program", "/nowhere")).await, &["program="]);
        failed(&place.call(&with("mode", "maybe")).await, &["mode"]);
        failed(&place.call(&with("url", "")).await, &["url is missing"]);
    }
    for action in ["off", "on", "monitor"] {
        let with = [
            ("action", action),
            ("plug", "h1"),
            ("token_file", onlooker.as_str()),
        ];
        failed(&place.call(&with).await, &[no_role]);
    }
    for action in ["off", "on", "status"] {
        failed(&place.call(&[("action", action)]).await, &["needs plug"]);
        // `--help` is taken for a host's name.
        for unknown in ["h2", "--help"] {
            let run = place.call(&[("action", action), ("plug", unknown)]).await;
            failed(&run, &["pcmk_host_map"]);
        }
    }
    failed(
        &place.call(&[("action", "list"), ("mode", "confirm")]).await,
        &["pcmk_host_list"],
    );
    failed(&place.call(&[("action", "explode")]).await, &["explode", "off"]);
    failed(&place.call(&[]).await, &["action"]);
    let host = place.client.host("h1").await;
    assert_eq!(
        (&host["fencing_state"], &host["generation"]),
        (&json!("UNFENCED"), &json!(0))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_fails_if_its_confirmation_does_not_suffice_or_the_evacuation_cannot_begin() {
    let place = Place::start().await;
    let off = |host, more| {
        [
            ("action", "off"),
            ("mode", "confirm"),
            ("plug", host),
            ("timeout", "15"),
            more,
        ]
    };
    place.host("h1", "UNREACHABLE").await;
    // No platform has the host's workloads.
    let not_moved = place.call(&off("h1", ("evacuate", "1"))).await;
    failed(&not_moved, &["h1 is FENCED, but its evacuation has not begun"]);
    assert!(place.is_fenced("h1").await);

    let strict = json!({
        "name": "strict", "scope": { "kind": "host_type", "value": "strict" },
        "stages": ringfence_tests::power_plan(), "sufficient_sets": [["power.off"]],
    });
    place.client.post("/plans", strict).await.ok(201);
    let host = json!({ "name": "h2", "type": "strict" });
    place.client.post("/hosts", host).await.ok(201);
    place.client.seen("h2", "UNREACHABLE").await.ok(200);
    failed(
        &place.call(&off("h2", ("evacuate", "0"))).await,
        &["contain operator"],
    );
    assert!(!place.is_fenced("h2").await);
}
