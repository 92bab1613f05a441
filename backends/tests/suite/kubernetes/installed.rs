//! Which gates the doctor says are installed, by the objects as an API server serves them.

use ringfence_backends::kubernetes::{GateNames, WordGate};
use ringfence_backends::{GateState, Platform, Preflight};
use serde_json::{Value, json};

use super::api_server::{ADMISSION, ApiServer, CLUSTER, Found, binding, noon, place, policy};
use crate::gates::policies::RINGFENCE;

const NAMES: [&str; 8] = [
    "ringfence-pods",
    "ringfence-pod-phases",
    "ringfence-node-deletion",
    "ringfence-out-of-service",
    "ringfence-node-volumes",
    "ringfence-volume-attachments",
    "ringfence-gate-object",
    "ringfence-confirmations",
];

fn names() -> GateNames {
    GateNames {
        cluster: CLUSTER.to_owned(),
        namespace: "ringfence".to_owned(),
        gate: "ringfence-gate".to_owned(),
        account: RINGFENCE.to_owned(),
    }
}

pub fn shipped_policies() -> String {
    names().policies().unwrap()
}

async fn with_policies() -> ApiServer {
    let server = ApiServer::start(30).await;
    server.answers().install(&shipped_policies());
    server
}

async fn state(server: &ApiServer, gate: &str) -> GateState {
    let seen = server.cluster(Default::default()).gates().await.unwrap();
    assert_eq!(seen.len(), NAMES.len());
    seen.into_iter().find(|seen| seen.name == gate).unwrap().state
}

/// The doctor tells of this gate alone, with how to install it again.
#[track_caller]
fn assert_told(found: &Found, gate: &str, told: &str) {
    let faults = found.warnings(": the gate ringfence-");
    let faults: Vec<_> = faults
        .iter()
        .filter(|(told, _)| !told.contains("tried"))
        .collect();
    let [(seen, remedy)] = faults[..] else {
        panic!("{faults:?}");
    };
    assert_eq!(seen, &format!("east: the gate {gate} {told}"));
    assert!(
        remedy.starts_with("ringfence kubernetes gates east | kubectl apply -f -"),
        "{remedy}"
    );
}

#[tokio::test]
async fn gates_that_are_there_as_shipped_are_told_as_unchanged() {
    let server = with_policies().await;
    for name in NAMES {
        assert_eq!(state(&server, name).await, GateState::Installed, "{name}");
    }
    let found = server.examined().await;
    for name in NAMES {
        found.good(&format!("the gate {name} is installed and unchanged"));
    }
    assert!(found.warnings("").is_empty(), "{found:?}");
    server.assert_nothing_was_changed();
}

/// What a person writes may leave out what the API server fills in.
#[tokio::test]
async fn fields_that_the_api_server_fills_in_are_no_change() {
    let server = ApiServer::start(30).await;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&shipped_policies()).unwrap();
    for mut document in documents {
        let path = place(&document);
        let spec = document["spec"].as_object_mut().unwrap();
        spec.remove("failurePolicy");
        if let Some(constraints) = spec.get_mut("matchConstraints").and_then(Value::as_object_mut) {
            constraints.remove("matchPolicy");
            constraints.remove("objectSelector");
            if constraints["namespaceSelector"] == json!({}) {
                constraints.remove("namespaceSelector");
            }
            for rule in constraints["resourceRules"].as_array_mut().unwrap() {
                rule.as_object_mut().unwrap().remove("scope");
            }
        }
        let mut answers = server.answers();
        answers.put(&path, document);
        // Fields of a release that is newer than this program.
        answers.change(&path, "/spec/ofALaterRelease", json!({ "a": 1 }));
        answers.change(
            &path,
            "/metadata/annotations",
            json!({ "meta.helm.sh/release-name": "ringfence" }),
        );
    }
    for name in NAMES {
        assert_eq!(state(&server, name).await, GateState::Installed, "{name}");
    }
}

#[tokio::test]
async fn each_gate_that_is_missing_is_told_with_its_name() {
    let server = with_policies().await;
    for name in NAMES {
        let removed = server.answers().take(&policy(name));
        assert_eq!(state(&server, name).await, GateState::Missing);
        assert_told(
            &server.examined().await,
            name,
            "is not installed, and holds nothing",
        );
        server.answers().put(&policy(name), removed);
    }
    let all = ApiServer::start(30).await.examined().await;
    assert_eq!(
        all.warnings("is not installed, and holds nothing").len(),
        NAMES.len()
    );
}

#[tokio::test]
async fn a_policy_without_its_binding_holds_nothing_and_is_told_so() {
    let server = with_policies().await;
    for name in NAMES {
        let removed = server.answers().take(&binding(name));
        let told = "was changed: it has no binding, and holds nothing";
        assert_told(&server.examined().await, name, told);
        server.answers().put(&binding(name), removed);
    }
}

#[tokio::test]
async fn each_change_that_holds_less_is_told_with_the_field() {
    for (path, pointer, value, told) in [
        (
            policy("ringfence-pods"),
            "/spec/validations/0/expression",
            json!("true"),
            "spec.validations[0].expression of the policy differs",
        ),
        (
            policy("ringfence-pods"),
            "/spec/matchConditions/2/expression",
            json!("false"),
            "spec.matchConditions[2].expression of the policy differs",
        ),
        (
            policy("ringfence-confirmations"),
            "/spec/validations",
            json!([]),
            "spec.validations of the policy differs",
        ),
        (
            policy("ringfence-node-deletion"),
            "/spec/failurePolicy",
            json!("Ignore"),
            "spec.failurePolicy of the policy differs",
        ),
        (
            policy("ringfence-out-of-service"),
            "/spec/matchConstraints/resourceRules/0/operations",
            json!(["CREATE"]),
            "spec.matchConstraints.resourceRules[0].operations of the policy differs",
        ),
        (
            policy("ringfence-out-of-service"),
            "/spec/variables/1/expression",
            json!("true"),
            "spec.variables[1].expression of the policy differs",
        ),
        (
            policy("ringfence-node-volumes"),
            "/spec/matchConstraints/excludeResourceRules",
            json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes/status"] }]),
            "spec.matchConstraints.excludeResourceRules of the policy differs",
        ),
        (
            policy("ringfence-gate-object"),
            "/spec/matchConditions/1/expression",
            json!("request.userInfo.username != 'admin'"),
            "spec.matchConditions[1].expression of the policy differs",
        ),
        (
            binding("ringfence-pods"),
            "/spec/validationActions",
            json!(["Audit"]),
            "spec.validationActions[0] of the binding differs",
        ),
        (
            binding("ringfence-pods"),
            "/spec/validationActions",
            json!(["Warn", "Audit"]),
            "spec.validationActions of the binding differs",
        ),
        (
            binding("ringfence-volume-attachments"),
            "/spec/paramRef/parameterNotFoundAction",
            json!("Allow"),
            "spec.paramRef.parameterNotFoundAction of the binding differs",
        ),
        (
            binding("ringfence-volume-attachments"),
            "/spec/paramRef/name",
            json!("another"),
            "spec.paramRef.name of the binding differs",
        ),
        (
            binding("ringfence-pod-phases"),
            "/spec/matchResources",
            json!({ "namespaceSelector": { "matchLabels": { "a": "b" } } }),
            "spec.matchResources of the binding differs",
        ),
        (
            binding("ringfence-confirmations"),
            "/spec/policyName",
            json!("another"),
            "spec.policyName of the binding differs",
        ),
    ] {
        let server = with_policies().await;
        server.answers().change(&path, pointer, value);
        let gate = path.rsplit('/').next().unwrap();
        assert_told(&server.examined().await, gate, &format!("was changed: {told}"));
    }
}

/// A policy that names another account lets that account write the gate object, and not Ringfence.
#[tokio::test]
async fn the_policy_of_another_account_is_told_as_changed() {
    let server = ApiServer::start(30).await;
    let of_another = GateNames {
        account: "system:serviceaccount:other:ringfence".to_owned(),
        ..names()
    };
    server.answers().install(&of_another.policies().unwrap());
    let found = server.examined().await;
    assert_told(
        &found,
        "ringfence-gate-object",
        "was changed: spec.matchConditions[1].expression of the policy differs",
    );
}

#[tokio::test]
async fn the_forced_detachment_is_warned_of_while_its_own_gate_does_not_hold() {
    let forced = "by force when it was silent for 6 minutes";
    let server = with_policies().await;
    assert!(server.examined().await.warnings(forced).is_empty());
    server.answers().take(&binding("ringfence-pods"));
    assert!(server.examined().await.warnings(forced).is_empty());
    server.answers().take(&binding("ringfence-node-volumes"));
    server.examined().await.warning(forced);
}

#[tokio::test]
async fn a_cluster_before_policies_says_so_of_each_gate() {
    let server = ApiServer::start(29).await;
    for name in NAMES {
        assert_eq!(state(&server, name).await, GateState::NotAvailable);
    }
    let (told, remedy) = server.examined().await.warning("no webhook");
    assert_eq!(
        told,
        "east: its version has no admission policies, and no webhook ringfence is installed"
    );
    assert!(
        remedy.contains("ringfence kubernetes webhooks east | kubectl apply"),
        "{remedy}"
    );
    assert!(remedy.contains("1.30"), "{remedy}");
    assert!(!server.was_asked("validatingadmissionpolicies"));
}

/// A certificate of an authority that is valid from and to these days from noon.
fn authority(from_days: i64, to_days: i64) -> String {
    let day = |days: i64| {
        use chrono::Datelike;
        let date = noon() + chrono::TimeDelta::days(days);
        rcgen::date_time_ymd(
            date.year(),
            u8::try_from(date.month()).unwrap(),
            u8::try_from(date.day()).unwrap(),
        )
    };
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (day(from_days), day(to_days));
    let key = rcgen::KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem()
}

/// As base64, in which objects have bytes.
fn encoded(text: &str) -> String {
    let bytes = k8s_openapi::ByteString(text.as_bytes().to_vec());
    serde_json::to_value(bytes).unwrap().as_str().unwrap().to_owned()
}

pub const WEBHOOKS: &str = "ringfence";
pub fn webhooks() -> String {
    format!("{ADMISSION}/validatingwebhookconfigurations/{WEBHOOKS}")
}

/// A cluster with the webhooks, which trust this authority.
pub async fn with_webhooks(minor: u32, authority: &str) -> ApiServer {
    let server = ApiServer::start(minor).await;
    let text = names()
        .webhooks("https://hook.example:8791", &encoded(authority))
        .unwrap();
    server.answers().install(&text);
    server
}

pub fn valid_authority() -> String {
    authority(-10, 100)
}

#[tokio::test]
async fn webhooks_as_shipped_are_told_by_name() {
    let server = with_webhooks(29, &valid_authority()).await;
    let found = server.examined().await;
    let told = found.good("its version has no admission policies");
    assert!(
        told.ends_with(
            "hold while the scheduler hook runs: pods.ringfence.io, nodes.ringfence.io, volumeattachments.ringfence.io, \
             evictions.ringfence.io, confirmations.ringfence.io"
        ),
        "{told}"
    );
    assert!(found.warnings("").is_empty(), "{found:?}");
}

#[tokio::test]
async fn each_webhook_that_is_missing_or_was_changed_is_told() {
    for (number, name) in [
        (0, "pods.ringfence.io"),
        (1, "nodes.ringfence.io"),
        (2, "volumeattachments.ringfence.io"),
        (3, "evictions.ringfence.io"),
    ] {
        let server = with_webhooks(29, &valid_authority()).await;
        let mut all = server.answers().get(&webhooks()).unwrap()["webhooks"].clone();
        let removed = all.as_array_mut().unwrap().remove(number);
        server.answers().change(&webhooks(), "/webhooks", all);
        let (told, remedy) = server.examined().await.warning("the webhook ");
        assert_eq!(
            told,
            format!("east: the webhook {name} is not installed, and holds nothing")
        );
        assert!(
            remedy.starts_with("ringfence kubernetes webhooks east | kubectl apply -f -"),
            "{remedy}"
        );

        let mut ignoring = removed;
        ignoring["failurePolicy"] = json!("Ignore");
        server
            .answers()
            .change(&webhooks(), "/webhooks", json!([ignoring]));
        let found = server.examined().await;
        let (told, _) = found.warning("was changed");
        assert_eq!(
            told,
            format!("east: the webhook {name} was changed, and may hold less: its failurePolicy differs")
        );
        assert!(found.good("no admission policies").ends_with(": none"));
    }
    // The one of people's words may be left out, and is told if it was changed.
    let server = with_webhooks(29, &valid_authority()).await;
    let mut all = server.answers().get(&webhooks()).unwrap()["webhooks"].clone();
    let mut words = all.as_array_mut().unwrap().pop().unwrap();
    words["rules"][0]["operations"] = json!(["CREATE"]);
    server.answers().change(&webhooks(), "/webhooks", all.clone());
    assert!(server.examined().await.warnings("").is_empty());
    all.as_array_mut().unwrap().push(words);
    server.answers().change(&webhooks(), "/webhooks", all);
    let (told, _) = server.examined().await.warning("the webhook ");
    assert!(
        told.contains("confirmations.ringfence.io was changed, and may hold less: its rules"),
        "{told}"
    );
}

/// The API server would refuse every certificate of the hook, and with it all that the webhooks are asked about.
#[tokio::test]
async fn a_webhook_whose_authority_is_not_valid_is_told_with_the_day() {
    let ended = authority(-100, -6);
    let early = authority(20, 100);
    for (bundle, told) in [
        (ended.clone(), "has expired on 2026-11-20"),
        (early.clone(), "is not valid before 2026-12-16"),
        ("no certificate".to_owned(), "has no certificate"),
        (format!("{early}{ended}"), "has expired on 2026-11-20"),
    ] {
        let server = with_webhooks(29, &bundle).await;
        let found = server.examined().await;
        let faults = found.warnings("cannot be asked: its caBundle ");
        assert_eq!(faults.len(), 5, "{found:?}");
        for (seen, remedy) in faults {
            assert!(seen.ends_with(told), "{seen}");
            assert!(remedy.contains("kubernetes webhooks"), "{remedy}");
        }
    }
    // A new authority beside the old one; and none, where the API server trusts those of its machine.
    for bundle in [format!("{ended}{}", valid_authority()), String::new()] {
        let server = with_webhooks(29, "placeholder").await;
        let mut all = server.answers().get(&webhooks()).unwrap()["webhooks"].clone();
        for webhook in all.as_array_mut().unwrap() {
            webhook["clientConfig"]["caBundle"] = json!(encoded(&bundle));
        }
        server.answers().change(&webhooks(), "/webhooks", all);
        let found = server.examined().await;
        assert!(found.warnings("").is_empty(), "{found:?}");
    }
}

/// Policies stand for the webhooks that are left out; those that are there are looked at.
#[tokio::test]
async fn beside_policies_only_the_webhooks_that_are_there_are_looked_at() {
    let server = with_policies().await;
    let text = names()
        .webhooks("https://hook.example:8791", &encoded(&authority(-100, -6)))
        .unwrap();
    server.answers().install(&text);
    let evictions = server.answers().get(&webhooks()).unwrap()["webhooks"][3].clone();
    server
        .answers()
        .change(&webhooks(), "/webhooks", json!([evictions]));
    let found = server.examined().await;
    let (told, _) = found.warning("");
    assert_eq!(
        told,
        "east: the webhook evictions.ringfence.io cannot be asked: its caBundle has expired on 2026-11-20"
    );
}

#[tokio::test]
async fn a_cluster_before_policies_is_warned_of_forced_detachment_unless_the_webhook_of_attachments_holds() {
    let forced = "by force when it was silent for 6 minutes";
    let server = with_webhooks(20, &valid_authority()).await;
    assert!(server.examined().await.warnings(forced).is_empty());
    let mut all = server.answers().get(&webhooks()).unwrap()["webhooks"].clone();
    all.as_array_mut().unwrap().remove(2);
    server.answers().change(&webhooks(), "/webhooks", all);
    server.examined().await.warning(forced);
}

/// The word of a person counts only where it is checked; a change of what checks it opens that.
#[tokio::test]
async fn a_person_is_believed_only_where_what_checks_words_is_unchanged() {
    let gate = async |server: &ApiServer| server.cluster(Default::default()).word_gate().await.unwrap();
    let server = with_policies().await;
    let made = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(gate(&server).await, WordGate::Holds { since: made });
    server.answers().take(&binding("ringfence-confirmations"));
    let WordGate::Open(why) = gate(&server).await else {
        panic!("open");
    };
    assert!(
        why.contains("it has no binding") && why.contains("webhook"),
        "{why}"
    );

    let server = with_webhooks(20, &valid_authority()).await;
    assert_eq!(gate(&server).await, WordGate::Holds { since: made });
    let mut all = server.answers().get(&webhooks()).unwrap()["webhooks"].clone();
    all[4]["failurePolicy"] = json!("Ignore");
    server.answers().change(&webhooks(), "/webhooks", all);
    let WordGate::Open(why) = gate(&server).await else {
        panic!("open");
    };
    assert!(
        why.contains("failurePolicy of the webhook confirmations.ringfence.io"),
        "{why}"
    );
}

#[tokio::test]
async fn a_gate_that_may_not_be_seen_is_no_good_finding() {
    let server = with_policies().await;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "validatingadmissionpolicies is forbidden: User \"u\" cannot get resource",
    });
    let version = server.answers().version.clone();
    server.answers().instead = Some(("GET", 403, "application/json", status.to_string()));
    let cluster = server.cluster(Default::default());
    assert!(cluster.gates().await.is_err());
    server.answers().version = version;
    let found = server.examined().await;
    assert!(
        !found
            .0
            .iter()
            .any(|one| matches!(one, Preflight::Good(told) if told.contains("gate")))
    );
}
