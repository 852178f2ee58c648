"""Upgrade and uninstall while a job runs, and installing again."""

import json
import time

from cases import life
from cases.install import CHART, DATA, INSTALLED
from lib import jobs
from lib.harness import NAMESPACE, RELEASE, ROOT, SYSTEM, Target, apply, expect, get, get_all, kubectl, run, until

JOB = "long"
UPGRADED = "upgrade: running pods stay as they are"
UNINSTALLED = "helm uninstall leaves the CRD, the job and its running pods"
CRD = "trainingjobs.outrigger.dev"
NEXT = "next"  # the tag that the upgrade brings; the images are the same


def chart_version():
    return run("helm", "list", "--namespace", SYSTEM, "-o", "json") and \
        json.loads(run("helm", "list", "--namespace", SYSTEM, "-o", "json"))[0]["app_version"]


def newer_definition():
    """The CRD with one more field, as a later version of it."""
    crd = get("crd", CRD)
    crd["metadata"] = {"name": CRD, "annotations": crd["metadata"]["annotations"]}
    del crd["status"]
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["note"] = {"type": "string", "maxLength": 64}
    return crd


def start_long_job():
    jobs.start(jobs.short_job(JOB, steps=100000))
    until("two workers are joined", 120, lambda: len(jobs.joined(JOB)) == 2)
    jobs.wait_for_step(JOB, 1)


def operator_images():
    return {pod["spec"]["containers"][0]["image"] for pod in get_all("pods", "app.kubernetes.io/component=operator", SYSTEM)
            if "deletionTimestamp" not in pod["metadata"]}


def upgrade():
    start_long_job()
    before = jobs.uids(JOB)
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text_in=json.dumps(newer_definition()))
    version = chart_version()
    options = []
    for image, repository in (("operator", "operator"), ("server", "gpu-server"), ("worker", "worker")):
        run(ROOT / "tests/cluster/node", "tag", f"outrigger-{repository}:{version}", f"outrigger-{repository}:{NEXT}")
        options += ["--set", f"images.{image}.tag={NEXT}"]
    target = Target()
    run("helm", "upgrade", RELEASE, CHART, "--namespace", SYSTEM, "--reset-then-reuse-values", "--wait",
        "--timeout", "120s", *options, timeout=150)
    target.reached("helm upgrade, until the new operator is ready", 60)
    # Helm waits for all replicas but maxUnavailable, and a former one may not have been asked to end yet.
    until("the operator's pods have the new image alone", 60, lambda: operator_images() == {f"outrigger-operator:{NEXT}"})
    noted = jobs.short_job("noted")
    noted["spec"].update({"note": "kept", "suspend": True})
    jobs.start(noted)
    expect(get("tjob", "noted")["spec"]["note"] == "kept", "the new field was dropped")
    jobs.remove("noted")
    expect(jobs.uids(JOB) == before, f"pods changed in the upgrade: {before} and then {jobs.uids(JOB)}")


def worker_joins_old_server():
    server, before, images = jobs.uids(JOB, "server"), jobs.uids(JOB, "worker"), get("tjob", JOB)["status"]["images"]
    kubectl("delete", "pod", f"{JOB}-worker-0-0", "--grace-period=1")
    # By uid: an operator that took over meanwhile may not have seen the former one, and gives its name again.
    workers = until("another worker is joined", 90, lambda: jobs.without(JOB, [before[f"{JOB}-worker-0-0"]]))
    made = {pod["spec"]["containers"][0]["image"] for pod in workers.values() if pod["metadata"]["uid"] not in before.values()}
    expect(made == {images["worker"]} and NEXT not in images["worker"], f"the replacement has {made}, not {images['worker']}")
    expect(jobs.uids(JOB, "server") == server, "the server was replaced")


def uninstall():
    before, done = jobs.uids(JOB), max(jobs.steps_done(JOB))
    run("helm", "uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "120s", timeout=150)
    expect(get("crd", CRD), "the definition is gone")
    expect(get("tjob", JOB), "the job is gone")
    jobs.wait_for_step(JOB, done + 20)
    expect(jobs.uids(JOB) == before, "the job's pods changed")
    until("nothing is left of the release", 60, nothing_is_left)  # the collector takes pods after their Deployment
    until("the lease goes with the operator's account", 120, lambda: get("lease", RELEASE, SYSTEM) is None)


def nothing_is_left():
    of_release = f"app.kubernetes.io/instance={RELEASE}"
    left = []
    for kind in ("deployments,pods,services,serviceaccounts,configmaps,secrets,roles,rolebindings,networkpolicies,"
                 "poddisruptionbudgets", "clusterroles,clusterrolebindings"):
        left += [item["kind"] + " " + item["metadata"]["name"] for item in get_all(kind, of_release, SYSTEM)
                 if "deletionTimestamp" not in item["metadata"]]
    expect(not left, f"left of the release: {left}")
    secrets = [item["metadata"]["name"] for item in get_all("secrets", "", SYSTEM)]
    expect(not secrets, f"left in the operator's namespace: {secrets}")
    return True


def install_again():
    """With another token key: the job's pods and new ones go by the job's own Secret; its server takes no edits."""
    run("helm", "install", RELEASE, CHART, "--namespace", SYSTEM, "--wait", "--timeout", "120s", timeout=150)
    server, lost = jobs.uids(JOB, "server"), jobs.uids(JOB, "worker")[f"{JOB}-worker-1-0"]
    kubectl("delete", "pod", f"{JOB}-worker-1-0", "--grace-period=1")
    target = Target()
    until("another worker is joined", 90, lambda: jobs.without(JOB, [lost]))
    # The former leader's lease went with its release, so nobody waits it out.
    target.reached("a worker deleted after installing again, until another is joined", 30)
    kubectl("patch", "tjob", JOB, "--type=merge", "-p", '{"spec": {"split": {"sharePercent": 25}}}')
    until("the refused edit is an event", 180, lambda: jobs.refused_edits(JOB, "another token key"))
    expect(jobs.uids(JOB, "server") == server, "the server was replaced")
    kubectl("patch", "tjob", JOB, "--type=merge", "-p", '{"spec": {"suspend": true}}')
    until("the job is Suspended", 120, lambda: jobs.holds(JOB, "Suspended"))
    kubectl("patch", "tjob", JOB, "--type=merge", "-p", '{"spec": {"suspend": false}}')
    jobs.wait_until(JOB, "the next attempt has the edit", 120, lambda: jobs.server_says(JOB, "/plan", "sharePercent") == 25)
    time.sleep(15)  # longer than between two looks at a server
    expect(len(jobs.refused_edits(JOB, "another token key")) == 1, "what its file has is told to the server")
    jobs.remove(JOB)


CASES = [
    (UPGRADED, [INSTALLED, DATA], upgrade),
    ("a worker deleted after the upgrade joins the old server", [UPGRADED], worker_joins_old_server),
    (UNINSTALLED, [UPGRADED], uninstall),
    ("installed again, the operator takes the job up", [UNINSTALLED], install_again),
    life.LAST,
]
