"""Checks the chart: values against their schema, every template with several values, and the results against Kubernetes' own schemas.

Prints the containers' arguments, environment and configuration as JSON, for a test; or, with values in JSON as the second argument, the objects that
the chart makes of them. With Helm in PATH its `lint` has to pass, and its `template` has
to give equal results. Needs Go, PyYAML, jsonschema and kubernetes-validate.
"""

import copy
import json
import pathlib
import shutil
import subprocess
import sys

import jsonschema
import kubernetes_validate
import yaml

HERE = pathlib.Path(__file__).resolve().parent
CHART = HERE.parent / "ringfence"
# The oldest release that the chart allows, and the newest that the schemas know, at the time of writing.
RELEASES = ["1.27", "1.34"]
# Releases with admission policies.
POLICY_RELEASES = ["1.30", "1.34"]
WORDS = "confirmations.ringfence.io"
WEBHOOKS = HERE.parent.parent / "kubernetes" / "webhooks.yaml"
# Objects of the Prometheus operator are not checked: its schemas are not in the package.
FOREIGN = "monitoring.coreos.com/"
PEERS = [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]
CASES = {
    "defaults": {},
    "everything": {
        "image": {"tag": "1", "pullSecrets": [{"name": "pull"}]},
        "secrets": {"devices": "bmc"},
        "api": {"allowFrom": PEERS, "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
                "service": {"annotations": {"a": "b"}}},
        "schedulerHook": {"enabled": True, "allowFrom": PEERS, "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
                          "service": {"type": "LoadBalancer"}},
        "worker": {"zones": [{"name": "a", "replicas": 3, "nodeSelector": {"zone": "a"}}, {"name": "b"}]},
        "migrate": {"servicesStopped": True},
        "networkPolicy": {"metricsFrom": PEERS, "controlEgress": [{"ports": [{"port": 5432}]}],
                          "workerEgress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]},
        "serviceMonitor": {"enabled": True, "labels": {"a": "b"}, "tokenSecret": {"name": "t"}},
        "prometheusRule": {"enabled": True},
        "gates": {"enabled": True, "account": "fencing"},
        "kdump": {"enabled": True, "from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]},
    },
    "in the cluster": {"mode": "inCluster"},
    "everything in the cluster": {
        "mode": "inCluster",
        "image": {"tag": "1", "pullSecrets": [{"name": "pull"}]},
        "secrets": {"devices": "bmc"},
        "gates": {"enabled": True},
        "kdump": {"enabled": True, "listen": "[::]", "port": 7411},
        "inCluster": {
            "cluster": "east", "segment": "rack", "fencedStorage": ["a.csi", "b.csi"], "fencedLabel": "ha=on", "tokensSecret": "tokens", "nodeSelector": {"a": "b"}, "allowFrom": PEERS,
            "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}], "publicMetrics": True, "disruptionBudgets": True,
            "tls": {"secret": "own", "authority": "YXV0aG9yaXR5"},
            "webhooks": {"enabled": True, "annotations": {"cert-manager.io/inject-ca-from": "fencing/own"}},
            "healthChecks": {"medik8s": True, "machines": True},
            "moreConfiguration": "[worker]\nconcurrency = 8\n",
            "moreRights": [{"apiGroups": ["metal3.io"], "resources": ["baremetalhosts"], "verbs": ["get", "patch"]}],
        },
    },
    "all webhooks in the cluster": {"mode": "inCluster", "inCluster": {"webhooks": {"enabled": True, "failurePolicy": "Ignore", "confirmations": True}}},
    "all webhooks but that for people": {"mode": "inCluster", "inCluster": {"webhooks": {"enabled": True}}},
    "little": {"migrate": {"enabled": False}, "networkPolicy": {"enabled": False}, "podDisruptionBudget": {"enabled": False}},
}
WRONG = [{"mode": "else"}, {"inCluster": {"cluster": "a b"}}, {"inCluster": {"fencedLabel": "on"}}, {"inCluster": {"webhooks": {"failurePolicy": "Maybe"}}},
         {"api": {"replica": 2}}, {"worker": {"zones": []}}, {"worker": {"resourceKinds": "power,fun"}}, {"metricsPort": 80}, {"kdump": {"listen": "eth0"}}]


def merged(base, over):
    made = copy.deepcopy(base)
    for key, value in over.items():
        made[key] = merged(made[key], value) if isinstance(value, dict) and isinstance(made.get(key), dict) else value
    return made


def render(go, values):
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    context = {
        "Values": values,
        "Release": {"Name": "ringfence", "Namespace": "fencing", "Service": "Helm"},
        "Chart": {"Name": chart["name"], "AppVersion": str(chart["appVersion"])},
        "Files": {f"files/{path.name}": path.read_text() for path in (CHART / "files").iterdir()},
    }
    templates = sorted(map(str, (CHART / "templates").iterdir()))
    done = subprocess.run([go, "run", HERE / "render.go", *templates], input=json.dumps(context), text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"the chart cannot be rendered: {done.stderr}")
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def check(case, documents):
    seen = set()
    for document in documents:
        name = (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"])
        if name in seen:
            sys.exit(f"{case}: {name} is there twice")
        seen.add(name)
        if document["apiVersion"].startswith(FOREIGN):
            continue
        for release in POLICY_RELEASES if document["kind"].startswith("ValidatingAdmissionPolicy") else RELEASES:
            try:
                kubernetes_validate.validate(document, release, strict=True)
            except kubernetes_validate.ValidationError as error:
                sys.exit(f"{case}: {name}, Kubernetes {release}: {error.message} at {list(error.path)}")
    return seen


def by_helm(values):
    answers = []
    for command in (["lint", "--strict"], ["template", "ringfence", "--namespace", "fencing"]):
        done = subprocess.run(["helm", *command, CHART, "--values", "-"], input=yaml.safe_dump(values), text=True, capture_output=True)
        if done.returncode:
            sys.exit(f"helm {command[0]}: {done.stdout}{done.stderr}")
        answers.append(done.stdout)
    return [document for document in yaml.safe_load_all(answers[1]) if document]


def comparable(documents):
    """Without certificates, of which each rendering makes others."""
    def plain(value, key=None):
        if key == "caBundle" or (key == "data" and "tls.key" in value):
            return "made"
        if isinstance(value, dict):
            return {key: plain(one, key) for key, one in value.items()}
        return [plain(one) for one in value] if isinstance(value, list) else value
    return sorted(str(plain(document)) for document in documents)


def configuration(documents):
    """The text of the configuration file that the chart makes, if it makes one."""
    return next((document["data"]["ringfence.toml"] for document in documents
                 if document["kind"] == "ConfigMap" and "ringfence.toml" in document["data"]), None)


def check_webhooks(case, documents, values):
    """All webhooks of the file, or only that for evictions where the policies hold. That for people's words is asked for, and never open."""
    chosen = values["inCluster"]["webhooks"]
    wanted = {webhook["name"]: chosen["failurePolicy"] for webhook in yaml.safe_load(WEBHOOKS.read_text())["webhooks"]}
    wanted[WORDS] = "Fail"
    if not chosen["confirmations"]:
        del wanted[WORDS]
    if values["gates"]["enabled"]:
        wanted = {"evictions.ringfence.io": chosen["failurePolicy"]}
    for document in documents:
        if document["kind"] == "ValidatingWebhookConfiguration":
            found = {webhook["name"]: webhook["failurePolicy"] for webhook in document["webhooks"]}
            if found != wanted:
                sys.exit(f"{case}: the webhooks are {found}, and should be {wanted}")


def main(go, wanted=None):
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    if wanted:
        json.dump(render(go, merged(defaults, json.loads(wanted))), sys.stdout)
        return
    containers = []
    for case, over in CASES.items():
        values = merged(defaults, over)
        jsonschema.validate(values, schema)
        documents = render(go, values)
        names = check(case, documents)
        check_webhooks(case, documents, values)
        if shutil.which("helm") and comparable(by_helm(over)) != comparable(documents):
            sys.exit(f"{case}: helm renders the chart differently")
        print(f"{case}: {len(names)} objects", file=sys.stderr)
        for document in documents:
            template = document.get("spec", {}).get("template", {}).get("spec", {})
            for container in template.get("containers", []):
                containers.append({"args": container["args"], "env": {v["name"]: v["value"] for v in container["env"]},
                                   "configuration": configuration(documents)})
    check("webhooks", [yaml.safe_load(WEBHOOKS.read_text())])
    for over in WRONG:
        try:
            jsonschema.validate(merged(defaults, over), schema)
        except jsonschema.ValidationError:
            continue
        sys.exit(f"the schema of values allows {over}")
    if not shutil.which("helm"):
        print("helm is not installed: `helm lint` was not run, and templates were rendered by deploy/helm/check/render.go", file=sys.stderr)
    json.dump(containers, sys.stdout)


main(*sys.argv[1:])
