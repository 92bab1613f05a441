//! What an API server asks before it removes something of a node.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ringfence_api::{ApiConfig, Application, ServerTls, TlsFiles, Tokens};
use ringfence_backends::Platform;
use ringfence_backends::kubernetes::{Cluster, GateNames};
use ringfence_lab::{Authority, KubeApi, LabError};
use ringfence_operator::HookClusters;
use ringfence_scheduler_hook::{ClusterLookup, Hook, HookConfig};
use ringfence_tests::{Ground, StackOptions, now};
use serde_json::{Value, json};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::plant::{CLUSTER, GATE, NAMESPACE, PODS, Plant, settings};

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const AT_ONCE: i64 = 0;
const PATIENCE: Duration = Duration::from_secs(60);

/// A scheduler hook that speaks TLS, as API servers demand.
pub fn start_hook(plant: &Plant, stop: &CancellationToken) -> (String, String) {
    let dir = plant.stack.site.dir.path();
    let authority = Authority::new().unwrap();
    let issued = authority.issue(&["127.0.0.1"]).unwrap();
    let files = TlsFiles {
        certificate: dir.join("hook.pem"),
        key: dir.join("hook.key"),
    };
    std::fs::write(&files.certificate, &issued.certificate).unwrap();
    std::fs::write(&files.key, &issued.key).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&files.key, private).unwrap();
    let options = StackOptions::default();
    let engine = plant.stack.api.clone();
    let clock = engine.clock().clone();
    let config = ApiConfig {
        listen: "127.0.0.1:0".parse().unwrap(),
        max_body_bytes: 65_536,
        threads: 1,
        are_metrics_public: false,
        tls: Some(ServerTls::open(files, clock.now()).unwrap()),
        keystone: None,
        limits: options.limits,
        streams: options.streams,
        recheck_every: Duration::from_secs(1),
    };
    let now = clock.clone();
    let cluster = Arc::new(Cluster::new(settings(plant.kubeconfig())));
    let hook_config = HookConfig {
        clusters: vec![CLUSTER.to_owned()],
        lookup: ClusterLookup::new(HookClusters::new(vec![cluster])),
        ..HookConfig::default()
    };
    let hook = Hook::new(engine.db().clone(), Arc::new(move || now.now()), hook_config);
    let tokens = Tokens::open(&dir.join("tokens.toml")).unwrap();
    let application = Application::build_hook(config, hook, clock, tokens).unwrap();
    let url = format!("https://{}", application.address());
    let stopped = stop.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(application.run(stopped)).unwrap();
    });
    (url, BASE64_STANDARD.encode(authority.certificate()))
}

pub fn install(plant: &Plant, (url, authority): &(String, String)) {
    let names = GateNames {
        cluster: CLUSTER.to_owned(),
        namespace: NAMESPACE.to_owned(),
        gate: GATE.to_owned(),
        account: "admin".to_owned(),
    };
    let webhooks: Value = serde_saphyr::from_str(&names.webhooks(url, authority).unwrap()).unwrap();
    block_in_place(|| plant.api().post(WEBHOOKS, &webhooks).unwrap());
}

/// Waits until the API server asks: it takes in a new webhook within a second or so.
pub fn until_asked(api: &KubeApi, path: &str) -> String {
    loop {
        let tried = api.delete(
            &format!("{path}?dryRun=All"),
            &json!({ "gracePeriodSeconds": AT_ONCE }),
        );
        match tried {
            Err(LabError::Refused { body, .. }) if body.contains("ringfence.io") => return body,
            _ => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// As docs/kubernetes-gates.md has it.
fn extender((url, authority): &(String, String), token: &str) -> Value {
    let url = url.replacen("https://", &format!("https://scheduler:{token}@"), 1);
    json!({
        "urlPrefix": format!("{url}/kubernetes"),
        "filterVerb": format!("filter?cluster={CLUSTER}"),
        "enableHTTPS": true,
        "tlsConfig": { "caData": authority },
        "httpTimeout": "5s",
        "nodeCacheCapable": true,
        "ignorable": false,
    })
}

/// A pod for one node, which minds no taint.
fn run_in_spite_of_taints(plant: &Plant, name: &str, node: &str) {
    let pod = json!({
        "metadata": { "name": name },
        "spec": {
            "nodeSelector": { "kubernetes.io/hostname": node },
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{ "name": "main", "image": "none" }],
        },
    });
    plant.api().post(PODS, &pod).unwrap();
}

fn until_refused(plant: &Plant, pod: &str) -> String {
    let path = format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={pod}");
    let is_refused = |list: &Value| list.to_string().contains("FailedScheduling");
    let list = plant
        .api()
        .until("a pod without a node", &path, PATIENCE, is_refused)
        .unwrap();
    list["items"][0]["message"].as_str().unwrap().to_owned()
}

/// Waits until one finding has this part: the API server takes in a change of its webhooks within a second or so.
async fn doctor_tells(plant: &Plant, part: &str) {
    let cluster = Cluster::new(settings(plant.kubeconfig()));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = cluster.preflight(now()).await;
        let mut told = found.iter().map(|found| format!("{found:?}"));
        if told.any(|told| told.contains(part)) {
            return;
        }
        assert!(Instant::now() < deadline, "{part}: {found:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_silent_node_is_removed_before_it_is_fenced_and_its_kubelet_ends_its_pods() {
    let plant = Plant::start(Ground::Distributed, json!({ "auto_rejoin": false })).await;
    let stop = CancellationToken::new();
    let pod = plant.until_running("db-0", |_| true);
    let path = format!("{PODS}/db-0");
    let label = json!({ "metadata": { "labels": { "ringfence.io/guarded": "true" } } });
    for member in ["db-0", "db-1"] {
        block_in_place(|| plant.api().patch(&format!("{PODS}/{member}"), &label).unwrap());
    }
    let hook = start_hook(&plant, &stop);
    install(&plant, &hook);
    block_in_place(|| until_asked(plant.api(), &path));

    for webhook in ["pods.ringfence.io", "volumeattachments.ringfence.io"] {
        doctor_tells(&plant, &format!("Good(\"lab: the webhook {webhook} has refused")).await;
    }

    // The node of the other member is well: its kubelet ends the pod by a forced deletion of its own.
    let other = plant.until_running("db-1", |_| true);
    block_in_place(|| {
        plant
            .api()
            .delete(&format!("{PODS}/db-1"), &json!({ "gracePeriodSeconds": 2 }))
            .unwrap()
    });
    plant.until_running("db-1", |pod| pod["metadata"]["uid"] != other["metadata"]["uid"]);

    let dead = plant.node(&pod["spec"]["nodeName"]);
    let name = dead.name();
    block_in_place(|| dead.kill());
    plant.until_seen(name, "UNREACHABLE").await;
    block_in_place(|| dead.until_not_ready().unwrap());
    let attachments = "/apis/storage.k8s.io/v1/volumeattachments";
    let list = block_in_place(|| plant.api().get(attachments).unwrap());
    let mut attached = list["items"].as_array().unwrap().iter();
    let attached = attached.find(|one| one["spec"]["nodeName"] == name).unwrap();
    let attachment = format!("{attachments}/{}", attached["metadata"]["name"].as_str().unwrap());
    let refused = |done: Result<Value, LabError>, what: &str| match done {
        Err(LabError::Refused { body, .. }) => {
            assert!(body.contains("ringfence host fence"), "{what}: {body}")
        }
        other => panic!("{what}: {other:?}"),
    };
    let forced = json!({ "gracePeriodSeconds": AT_ONCE });
    let eviction = json!({
        "apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": { "name": "db-0", "namespace": "default" },
        "deleteOptions": forced,
    });
    block_in_place(|| {
        let api = plant.api();
        refused(api.delete(&path, &forced), "the forced deletion");
        let finished = json!({ "status": { "phase": "Failed" } });
        refused(api.patch(&format!("{path}/status"), &finished), "the phase");
        refused(api.post(&format!("{path}/eviction"), &eviction), "the eviction");
        refused(
            api.delete(&format!("/api/v1/nodes/{name}"), &json!({})),
            "the node",
        );
        refused(api.delete(&attachment, &json!({})), "the attachment");
    });

    plant.stack.client.fence(name).await;
    let fence = plant.until_ended(name, "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    block_in_place(|| plant.api().delete(&path, &forced).unwrap());
    block_in_place(|| plant.api().delete(&attachment, &json!({})).unwrap());
    let next = plant.until_running("db-0", |next| next["metadata"]["uid"] != pod["metadata"]["uid"]);
    assert_ne!(next["spec"]["nodeName"], name);

    let scheduler = extender(&hook, plant.stack.client.token().unwrap());
    block_in_place(|| {
        plant.plane.extend_scheduler(scheduler).unwrap();
        run_in_spite_of_taints(&plant, "eager", name);
        let why = until_refused(&plant, "eager");
        assert!(why.contains("FENCED"), "{why}");
        dead.start_again().unwrap();
        dead.until_ready().unwrap();
    });
    plant.until_seen(name, "UP").await;
    let eager = block_in_place(|| plant.api().get(&format!("{PODS}/eager")).unwrap());
    assert!(
        eager["spec"]["nodeName"].is_null(),
        "bound to a node that is not taken back"
    );
    let reason = json!({ "reason": "it is mended" });
    plant
        .stack
        .client
        .post(&format!("/hosts/{name}/rejoin"), reason)
        .await
        .ok(202);
    plant.until_running("eager", |pod| pod["spec"]["nodeName"] == name);
    stop.cancel();
    plant.stack.stop().await;
}
