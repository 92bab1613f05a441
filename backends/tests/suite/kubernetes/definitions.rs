//! What the doctor says of the definitions of Ringfence's objects.

use ringfence_backends::kubernetes::ClusterUses;
use serde_json::{Value, json};

use super::api_server::{ApiServer, Found, place};

const DEFINE: &str = "ringfence kubernetes crds | kubectl apply -f -";
const OPERATOR: ClusterUses = ClusterUses {
    has_operator: true,
    has_records: true,
};
const STATUS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";

pub fn definitions() -> [Value; 2] {
    [
        include_str!("../../../../deploy/helm/ringfence/crds/nodefences.yaml"),
        include_str!("../../../../deploy/helm/ringfence/crds/ringfenceremediations.yaml"),
    ]
    .map(|text| serde_saphyr::from_str(text).unwrap())
}

async fn with_definitions(minor: u32, change: impl Fn(&mut [Value; 2])) -> ApiServer {
    let server = ApiServer::start(minor).await;
    let mut all = definitions();
    change(&mut all);
    for definition in all {
        server.answers().put(&place(&definition), definition);
    }
    server
}

fn remove(definition: &mut Value, pointer: &str, field: &str) {
    let fields = definition.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
    fields.remove(field).unwrap();
}

/// One failure alone, with how to define the objects.
#[track_caller]
fn assert_fails(found: &Found, told: &str) {
    assert_eq!(found.failure(""), (told.to_owned(), DEFINE.to_owned()));
}

#[tokio::test]
async fn definitions_as_shipped_are_told_as_such() {
    for minor in [20, 32] {
        let server = with_definitions(minor, |_| {}).await;
        let found = server.examined_as(OPERATOR).await;
        found.good("east: NodeFence and RingfenceRemediation objects are defined as this version needs them");
        let records = ClusterUses {
            has_operator: false,
            has_records: true,
        };
        server
            .examined_as(records)
            .await
            .good("east: NodeFence objects are defined");
        // Where no objects are used nothing is said of them.
        assert!(!format!("{:?}", server.examined().await).contains("NodeFence"));
    }
}

#[tokio::test]
async fn definitions_that_are_missing_or_of_another_version_are_a_failure() {
    let server = ApiServer::start(32).await;
    let found = server.examined_as(OPERATOR).await;
    assert_fails(&found, "east: NodeFence objects are not defined");
    let server = with_definitions(32, |all| {
        for one in all {
            one["spec"]["versions"][0]["name"] = json!("v1beta1");
        }
    });
    assert_fails(
        &server.await.examined_as(OPERATOR).await,
        "east: Ringfence's objects are defined as ringfence.io/v1beta1 alone, and this version uses ringfence.io/v1alpha1",
    );
    let server = with_definitions(32, |[_, remediations]| {
        remediations["spec"]["versions"][0]["name"] = json!("v1beta1");
    });
    assert_fails(
        &server.await.examined_as(OPERATOR).await,
        "east: the cluster does not serve ringfenceremediations.ringfence.io in version v1alpha1",
    );
    let server = with_definitions(32, |[fences, _]| {
        remove(fences, "/spec/versions/0", "subresources")
    });
    assert_fails(
        &server.await.examined_as(OPERATOR).await,
        "east: the cluster does not serve nodefences/status.ringfence.io in version v1alpha1",
    );
}

#[tokio::test]
async fn a_definition_that_drops_the_record_is_a_failure_and_one_that_drops_another_field_a_warning() {
    for minor in [20, 32] {
        let server = with_definitions(minor, |[fences, _]| remove(fences, STATUS, "record"));
        assert_fails(
            &server.await.examined_as(OPERATOR).await,
            "east: the definition of NodeFence is of another version of Ringfence: the cluster drops the field status.record",
        );
        // A record of which only some fields are kept is none.
        let server = with_definitions(minor, |[fences, _]| {
            let record = format!("{STATUS}/record");
            *fences.pointer_mut(&record).unwrap() =
                json!({ "type": "object", "properties": { "writer": { "type": "string" } } });
        });
        let (told, _) = server.await.examined_as(OPERATOR).await.failure("");
        assert!(told.ends_with("drops the field status.record"), "{told}");
    }
    for (pointer, field, told) in [
        (SPEC.to_owned(), "confirmation", "spec.confirmation"),
        (
            format!("{STATUS}/proofs/items/properties"),
            "ended",
            "status.proofs[].ended",
        ),
    ] {
        let server = with_definitions(32, |[fences, _]| remove(fences, &pointer, field));
        let found = server.await.examined_as(OPERATOR).await;
        let (seen, remedy) = found.warning("another version of Ringfence");
        assert!(
            seen.ends_with(&format!("the cluster drops the field {told}")),
            "{seen}"
        );
        assert_eq!(remedy, DEFINE);
    }
    // A definition of a later version, which has more, is none that drops something.
    let server = with_definitions(32, |[fences, _]| {
        fences.pointer_mut(STATUS).unwrap()["later"] = json!({ "type": "string" });
    });
    server
        .await
        .examined_as(OPERATOR)
        .await
        .good("are defined as this version needs them");
}
