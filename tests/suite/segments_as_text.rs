//! Segments as YAML documents: an operator exports, edits, compares and applies them, and gets an old version back.

use ringfence_tests::{Ground, Machine, Run, Stack};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_document_is_exported_edited_compared_and_applied,
    nothing_is_written_of_a_file_with_a_fault,
    every_version_of_a_segment_is_in_the_audit_trail_and_can_be_had_back,
    a_template_is_applied_and_exported_as_it_was_meant,
);

/// An admin's machine.
fn machine(stack: &Stack) -> Machine {
    Machine::new()
        .set("RINGFENCE_URL", stack.client.base())
        .set("RINGFENCE_TOKEN", stack.client.token().unwrap())
}

/// Runs `ringfence segment` with these words.
async fn segment(machine: &Machine, words: &[&str]) -> Run {
    machine.run(&[&["segment"], words].concat()).await
}

async fn told(machine: &Machine, words: &[&str]) -> String {
    let run = segment(machine, words).await;
    assert_eq!(run.code, Some(0), "{words:?}: {run:?}");
    run.out
}

fn write(machine: &Machine, name: &str, text: &str) {
    std::fs::write(machine.file(name), text).unwrap();
}

async fn a_document_is_exported_edited_compared_and_applied(ground: Ground) {
    let stack = Stack::start(ground).await;
    let machine = machine(&stack);
    let rack = json!({
        "name": "rack-1", "description": "west", "policy": {
            "fencing": { "at_most": 3 }, "quarantine": { "fences": 3, "within_s": 600 },
            "conditions": [{ "condition": "Down", "status": "False", "action": "spare" }],
        },
    });
    stack.client.post("/segments", rack).await.ok(201);
    let exported = told(&machine, &["export"]).await;
    assert_eq!(exported.matches("---\n").count(), 1, "{exported}");
    write(&machine, "all.yaml", &exported);
    let words = ["-f", "all.yaml"];
    let unchanged = "default: unchanged\nrack-1: unchanged\n";
    assert_eq!(told(&machine, &[&["diff"][..], &words].concat()).await, unchanged);
    assert_eq!(
        told(&machine, &[&["apply"][..], &words].concat()).await,
        unchanged
    );
    let before = stack.client.get("/segments/rack-1").await;
    assert_eq!(before.header("etag"), "\"1\"");

    let edited = exported.replace("at_most: 3", "at_most: 2") + "---\nname: rack-2\n";
    write(&machine, "all.yaml", &edited);
    let run = segment(&machine, &[&["diff"][..], &words].concat()).await;
    let different = "\
default: unchanged
rack-1: would be changed
  policy.fencing.at_most: 3 -> 2
rack-2: would be created
";
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (Some(9), different, "")
    );
    let dry = told(&machine, &["apply", "--dry-run", "-f", "all.yaml"]).await;
    assert_eq!(dry, different);
    assert_eq!(stack.client.get("/segments/rack-1").await.header("etag"), "\"1\"");
    let applied = told(&machine, &["apply", "-f", "all.yaml"]).await;
    assert_eq!(applied, different.replace("would be ", ""));
    let after = stack.client.get("/segments/rack-1").await.ok(200);
    assert_eq!(after["policy"]["fencing"]["at_most"], 2);
    assert_eq!(
        after["policy"]["quarantine"],
        json!({ "fences": 3, "within_s": 600 })
    );

    // A document is the whole of a segment: what it leaves out takes its default.
    write(&machine, "all.yaml", "name: rack-1\ndescription: west\n");
    told(&machine, &["apply", "-f", "all.yaml"]).await;
    let bare = stack.client.get("/segments/rack-1").await.ok(200);
    let untouched = stack.client.get("/segments/rack-2").await.ok(200);
    assert_eq!(bare["policy"], untouched["policy"]);
    stack.stop().await;
}

async fn nothing_is_written_of_a_file_with_a_fault(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack
        .simulated_method("pdu", ringfence_core::Resource::Power)
        .await;
    let machine = machine(&stack);
    let refused = async |text: &str| {
        write(&machine, "racks.yaml", text);
        let run = segment(&machine, &["apply", "-f", "racks.yaml"]).await;
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
        stack.client.get("/segments/rack-1").await.ok(404);
        run.err
    };
    let err =
        refused("name: rack-1\n---\nname: rack-2\npolicy:\n  fencing:\n    at_mots: 2\n    after_s: 4000\n")
            .await;
    assert!(
        err.contains("racks.yaml:6:5: policy.fencing.at_mots: is not known; the nearest key is at_most"),
        "{err}"
    );
    assert!(
        err.contains("racks.yaml:7:14: policy.fencing.after_s: is 4000; 0 to 3600 is allowed"),
        "{err}"
    );
    // The service alone knows its methods.
    let err = refused(
        "name: rack-1\n---\nname: rack-2\npolicy:\n  fencing:\n    ceph:\n      - east\n      - pdu\n",
    )
    .await;
    assert!(
        err.contains("racks.yaml:7:9: policy.fencing.ceph[0]: is \"east\", and no method has this name"),
        "{err}"
    );
    assert!(
        err.contains("racks.yaml:8:9: policy.fencing.ceph[1]: is \"pdu\", and its driver is simulated"),
        "{err}"
    );
    stack.stop().await;
}

async fn every_version_of_a_segment_is_in_the_audit_trail_and_can_be_had_back(ground: Ground) {
    let stack = Stack::start(ground).await;
    let machine = machine(&stack);
    for policy in ["restarts: 1", "restarts: 2", "settle_s: 9"] {
        write(
            &machine,
            "rack.yaml",
            &format!("name: rack-1\npolicy: {{{policy}}}\n"),
        );
        told(&machine, &["apply", "-f", "rack.yaml"]).await;
    }
    let list = stack.client.get("/audit?action=segment.updated").await.ok(200);
    let changes = |line: &Value| line["detail"]["changes"].clone();
    let expected = json!([
        { "field": "policy.restarts", "from": 2, "to": 0 }, { "field": "policy.settle_s", "from": 5, "to": 9 },
    ]);
    assert_eq!(changes(&list["audit"][0]), expected);
    assert_eq!(
        changes(&list["audit"][1]),
        json!([{ "field": "policy.restarts", "from": 1, "to": 2 }])
    );
    let history = told(&machine, &["history", "rack-1"]).await;
    let first: Vec<&str> = history
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(first, ["3", "2", "1"], "{history}");
    assert!(
        history.contains("policy.restarts: 2 -> 0, policy.settle_s: 5 -> 9"),
        "{history}"
    );

    let second = told(&machine, &["export", "rack-1", "--revision", "2"]).await;
    write(&machine, "rack.yaml", &second);
    told(&machine, &["apply", "-f", "rack.yaml"]).await;
    let back = stack.client.get("/segments/rack-1").await;
    assert_eq!(back.header("etag"), "\"4\"");
    let policy = &back.ok(200)["policy"];
    assert_eq!((&policy["restarts"], &policy["settle_s"]), (&json!(2), &json!(5)));
    assert_eq!(told(&machine, &["export", "rack-1"]).await, second);

    // It outlives its name, and its segment.
    told(&machine, &["set", "rack-1", "--name", "rack-9"]).await;
    assert_eq!(
        told(&machine, &["export", "rack-9", "--revision", "2"]).await,
        second
    );
    told(&machine, &["delete", "rack-9"]).await;
    assert_eq!(
        told(&machine, &["export", "rack-9", "--revision", "2"]).await,
        second
    );
    let run = segment(&machine, &["export", "rack-9", "--revision", "7"]).await;
    assert_eq!(run.code, Some(4), "{run:?}");
    assert!(run.err.contains("no revision 7 of segment \"rack-9\""), "{run:?}");
    stack.stop().await;
}

async fn a_template_is_applied_and_exported_as_it_was_meant(ground: Ground) {
    let stack = Stack::start(ground).await;
    let machine = machine(&stack);
    let listed = told(&machine, &["template"]).await;
    let names: Vec<&str> = listed
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(names, ["ceph-rack", "nova-cell", "kubernetes"]);
    for name in names {
        write(
            &machine,
            "template.yaml",
            &told(&machine, &["template", name]).await,
        );
        let applied = told(&machine, &["apply", "-f", "template.yaml"]).await;
        assert!(applied.starts_with(&format!("{name}-1: created\n")), "{applied}");
        let exported = told(&machine, &["export", &format!("{name}-1")]).await;
        write(&machine, "exported.yaml", &exported);
        for file in ["template.yaml", "exported.yaml"] {
            let again = told(&machine, &["apply", "-f", file]).await;
            assert_eq!(again, format!("{name}-1: unchanged\n"));
        }
    }
    stack.stop().await;
}
