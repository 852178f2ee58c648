"""Images that are none, quotas, GPUs: what the cluster cannot give. Little is computed, so the example trains beside it."""

from cases.install import DATA, INSTALLED, TRAINS
from lib import jobs
from lib.harness import ROOT, Target, expect, kubectl, run, until

NOWHERE = "localhost:1/outrigger/none:1"  # nothing listens there
NEEDS = [INSTALLED, DATA]
ACCURACY = 0.95


def invalid_image_name():
    job = jobs.short_job("bad-name", workers=0)
    job["spec"]["server"]["template"] = jobs.role_template("server", "Not An Image")
    target = Target()
    name = jobs.start(job)
    until("the job has failed", 60, lambda: jobs.holds(name, "Failed"))
    target.reached("an image's name that is none, until Failed", 10)
    expect(jobs.condition(name, "Failed")["reason"] == "InvalidImageName", str(jobs.condition(name, "Failed")))
    jobs.remove(name)


def server_image_is_missing():
    job = jobs.short_job("no-image", workers=0)
    job["spec"]["server"]["template"] = jobs.role_template("server", NOWHERE)
    job["spec"]["startupDeadlineSeconds"] = 20
    target, deadline = Target(), Target()
    name = jobs.start(job)
    reasons = ("ErrImagePull", "ImagePullBackOff")
    until("PodsReady names the pull error", 60, lambda: jobs.condition(name, "PodsReady")["reason"] in reasons)
    target.reached("an image that cannot be pulled, until PodsReady says so", 10)
    until("the job has failed", 60, lambda: jobs.holds(name, "Failed"))
    deadline.reached("the same, until Failed with a startup deadline of 20 s", 25)
    failed = jobs.condition(name, "Failed")
    expect(failed["reason"] == "StartupDeadlineExceeded" and NOWHERE in failed["message"], str(failed))
    jobs.remove(name)


def worker_image_is_missing():
    job = jobs.short_job("half-image", workers=1)
    job["spec"]["workers"]["template"] = jobs.role_template("worker", NOWHERE)
    name = jobs.start(job)

    def told():
        degraded = jobs.condition(name, "Degraded")
        expect(degraded["status"] == "True" and "ImagePull" in degraded["reason"], str(degraded))
        return True

    jobs.wait_until(name, "the job is Degraded", 60, told)
    jobs.wait_for_end(name)
    jobs.remove(name)


def quota():
    job = jobs.short_job("too-big", workers=0)
    job["spec"]["server"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "20"}, "limits": {"cpu": "20", "memory": "1Gi"}}
    name = jobs.start(job)
    until("PodsScheduled names the quota", 60,
          lambda: jobs.condition(name, "PodsScheduled")["reason"] == "QuotaExceeded")
    expect("exceeded quota" in jobs.condition(name, "PodsScheduled")["message"], "without the API server's text")
    expect(not jobs.holds(name, "Failed"), "a quota failed the job")
    jobs.remove(name)


def gpu_is_placed():
    job = jobs.short_job("on-gpu", workers=0)
    job["spec"]["server"]["gpus"] = 1
    name = jobs.start(job)
    until("the pod waits for a GPU", 60, lambda: "nvidia.com/gpu" in jobs.condition(name, "PodsScheduled")["message"])
    run(ROOT / "tests/cluster/node", "gpus", "1")
    until("the pod is placed", 120, lambda: any(
        event["reason"] == "Scheduled" and event["involvedObject"]["name"].startswith("on-gpu-server-0")
        for event in jobs.get_all("events")))
    # Our server image computes on CPUs; it says so instead of training on them unasked.
    until("the server has told that it has no GPU", 120, lambda: jobs.holds(name, "Failed"))
    expect(jobs.condition(name, "Failed")["reason"] in ("NotSupported", "NoDevice"), str(jobs.condition(name, "Failed")))
    run(ROOT / "tests/cluster/node", "gpus", "0")
    jobs.remove(name)


def pod_security():
    job = jobs.short_job("root", workers=0)
    job["spec"]["server"]["template"]["spec"]["securityContext"] = {"runAsNonRoot": False, "runAsUser": 0}
    name = jobs.start(job)
    until("the job has failed", 60, lambda: jobs.holds(name, "Failed"))
    failed = jobs.condition(name, "Failed")
    expect(failed["reason"] == "PodSecurity" and "restricted" in failed["message"], str(failed))
    jobs.remove(name)


def faces_reach_accuracy():
    status = jobs.wait_for_end("faces", 600)
    lines = (jobs.VOLUMES / "runs/faces/metrics.jsonl").read_text().splitlines()
    accuracy = max(line["accuracy"] for line in map(jobs.json.loads, lines) if line["type"] == "evaluation")
    print(f"        held-out accuracy {100 * accuracy:.2f} %, wanted {100 * ACCURACY:.0f} %", flush=True)
    expect(accuracy >= ACCURACY, f"held-out accuracy {accuracy}")
    expect(status["progress"]["percent"] == 100, str(status["progress"]))
    expect(status.get("restarts", 0) == 0 and status["executionAttempts"] == 1, "the job was restarted")
    expect((jobs.VOLUMES / "runs/faces/weights.safetensors").exists(), "no weights were written")
    until("no pod runs any more", 120, lambda: all(
        pod["status"]["phase"] == "Succeeded" for pod in jobs.pods("faces").values()))
    expect(jobs.pods("faces", "server"), "the pod of the finished server was deleted, and its log with it")
    expect("weights:" in kubectl("logs", "faces-server-0-0"), "the server's log does not tell where the weights are")


CASES_WHILE_FACES_TRAIN = [
    ("an image's name that is none fails the job at once", NEEDS, invalid_image_name),
    ("a server image that cannot be pulled shows, and fails at the startup deadline", NEEDS, server_image_is_missing),
    ("a quota is waited for", NEEDS, quota),
    ("a pod that Pod Security refuses fails the job", NEEDS, pod_security),
    ("a GPU pod is placed once the node advertises a GPU", NEEDS, gpu_is_placed),
    ("the faces example reaches its accuracy", [TRAINS], faces_reach_accuracy),
    ("a worker image that cannot be pulled only degrades the job", NEEDS, worker_image_is_missing),
]
