"""From a bare node to the faces example: chart, namespace, operator, data, the job under way."""

import json
import os
import re
import tarfile

from lib import jobs, prometheus
from lib.harness import NAMESPACE, RELEASE, ROOT, SYSTEM, Failed, Target, apply, expect, get, kubectl, run, until

CHART = ROOT / "charts" / "outrigger"
INSTALLED = "helm installs the operator"
DATA = "claims, and images copied into one of them"
TRAINS = "kubectl apply: the faces example trains"


def check_chart():
    os.environ["OUTRIGGER_KUBECONFIG"] = os.environ["KUBECONFIG"]
    out = run("tests/cluster/chart", timeout=300)
    print("        " + out.strip().replace("\n", "\n        "), flush=True)


def images_are_labelled():
    """What tools/images saved, read without a daemon."""
    chart = run("helm", "show", "chart", CHART)
    version = re.search("^appVersion: (.*)$", chart, re.MULTILINE)[1]
    revision = "[0-9a-f]{40}" if (ROOT / ".git").exists() else "unknown"
    with tarfile.open(ROOT / "dist/images.tar") as archive:
        configs = {image["RepoTags"][0]: json.load(archive.extractfile(image["Config"]))["config"]
                   for image in json.load(archive.extractfile("manifest.json"))}
    for image in ("operator", "worker", "gpu-server"):
        config = configs[f"outrigger-{image}:{version}"]
        labels = {key.removeprefix("org.opencontainers.image."): value for key, value in (config.get("Labels") or {}).items()}
        expect(labels.pop("description", ""), f"{image} does not say what it does")
        found = labels.pop("revision", "")
        expect(re.fullmatch(revision, found), f"the revision of {image}: '{found}'")
        expect(labels == {"title": f"outrigger-{image}", "version": version, "licenses": "Apache-2.0",
                          "base.name": "debian:bookworm-slim"}, f"labels of {image}: {labels}")
        expect(config["User"] == "65532:65532", f"{image} runs as {config['User']}")


def make_namespace():
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    hard = {"pods": "30", "requests.cpu": "6", "limits.cpu": "60", "requests.memory": "24Gi", "limits.memory": "48Gi"}
    limits = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"},
              "defaultRequest": {"cpu": "10m", "memory": "64Mi"}}
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}})
    apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": hard}})
    apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [limits]}})
    for claim in ("faces", "runs"):
        apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": claim}, "spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"],
            "claimRef": {"namespace": NAMESPACE, "name": claim},
            "hostPath": {"path": str(jobs.VOLUMES / claim)}}})
    until("a pod that may run as root is refused", 60, lambda: "violates PodSecurity" in refusal_of_careless_pod())
    # Before, every pod is refused.
    until("the quota is counted", 60, lambda: get("resourcequota", "quota").get("status", {}).get("used"))


def refusal_of_careless_pod():
    try:
        return kubectl("run", "root", "--image", "debian:bookworm-slim")
    except Failed as error:
        return str(error)


def install():
    target = Target()
    # jobs.gpu: as where the server image used GPUs, so that a GPU pod is made and placed.
    run("helm", "install", RELEASE, CHART, "--namespace", SYSTEM, "--create-namespace", "--wait", "--timeout", "120s",
        "--set", "jobs.gpu=true", "--set", "jobs.logLevel=debug", timeout=150)
    target.reached("helm install, until two replicas are ready", 60)
    kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted", namespace=SYSTEM)
    kubectl("wait", "--for", "condition=Established", "crd/trainingjobs.outrigger.dev", "--timeout", "30s")
    until("a replica leads", 60, lambda: (get("lease", RELEASE, SYSTEM) or {"spec": {}})["spec"].get("holderIdentity"))
    # Again where it fails: kube-proxy and CoreDNS hear of the Service and of who is behind it later than Helm does.
    until("helm test passes", 120, lambda: run("helm", "test", RELEASE, "--namespace", SYSTEM, "--timeout", "60s"))
    prometheus.start()  # counters of the operator are seen before there is something to count


def copy_data():
    run(ROOT / "build/release/bin/outrigger", "generate", "faces", jobs.VOLUMES / "drawn" / "faces", timeout=300)
    kubectl("apply", "-f", ROOT / "manifests/examples/claims.yaml")
    kubectl("wait", "--for", "condition=Ready", "pod/loader", "--timeout", "120s", timeout=150)
    kubectl("cp", jobs.VOLUMES / "drawn" / "faces", "loader:/data", timeout=300)
    kubectl("delete", "pod", "loader", "--grace-period", "1")
    photos = len(list((jobs.VOLUMES / "faces").rglob("*.jpg")))
    expect(photos == 3000, f"{photos} photos arrived in the volume, 3000 were drawn")


def start_faces():
    target = Target()
    kubectl("apply", "-f", jobs.EXAMPLE)
    jobs.wait_for_step("faces", 1)
    target.reached("kubectl apply, until the first step", 30)
    until("the job runs with both workers", 60, lambda: jobs.holds("faces", "Running") and jobs.holds("faces", "PodsReady"))
    # The operator asks every 10 s, and seldomer who did not answer.
    until("progress shows", 120, lambda: "progress" in jobs.status("faces"))
    until("and in the columns", 60, columns_show)
    for pod in jobs.pods("faces").values():
        expect(pod["spec"]["automountServiceAccountToken"] is False, "a job's pod has a service-account token")
    expect(jobs.get("networkpolicy", "faces"), "the job has no NetworkPolicy")


def columns_show():
    columns = kubectl("get", "tjob", "faces").splitlines()
    expect(columns[0].split() == ["NAME", "STATE", "PROGRESS", "WORKERS", "STALL", "RESTARTS", "AGE"], columns[0])
    expect(columns[1].split()[1] == "Running" and columns[1].split()[3] == "2/2", columns[1])
    return True


def scale_faces():
    target = Target()
    kubectl("scale", "tjob", "faces", "--replicas", "3")
    until("a third worker is joined", 60, lambda: len(jobs.joined("faces")) == 3)
    target.reached("kubectl scale, until the third worker is joined", 20)
    kubectl("scale", "tjob", "faces", "--replicas", "2")
    until("two workers are left", 60, lambda: len(jobs.pods("faces", "worker")) == 2 and len(jobs.joined("faces")) == 2)
    expect(set(jobs.pods("faces", "worker")) == {"faces-worker-0-0", "faces-worker-1-0"}, "other workers were deleted")


CASES = [
    ("the chart lints, renders for EKS, GKE and AKS, and conforms", [], check_chart),
    ("the images tell what they are", [], images_are_labelled),
    ("a namespace with Pod Security restricted, a quota and limits", [], make_namespace),
    (INSTALLED, [], install),
    (DATA, ["a namespace with Pod Security restricted, a quota and limits"], copy_data),
    (TRAINS, [INSTALLED, DATA], start_faces),
    ("kubectl scale, up and down", [TRAINS], scale_faces),
]
