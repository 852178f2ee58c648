"""TrainingJobs of the tests: the faces example and short ones made of it, and what can be seen of them."""

import copy
import functools
import hashlib
import http.client
import json
import pathlib
import tempfile
import urllib.request

from lib.harness import Failed, Over, ROOT, apply, get, get_all, kubectl, until

EXAMPLE = ROOT / "manifests" / "examples" / "faces.yaml"
# The folders of the node that stand behind the claims of manifests/examples/claims.yaml.
VOLUMES = pathlib.Path(tempfile.gettempdir()) / "outrigger-cluster-test"
# The node is small, and a test's pods are to fit beside each other.
SMALL = {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}
# Of a short job: several times longer than what is done to its pods takes, on a fast machine and on a loaded one.
STEPS = 240


@functools.cache
def example():
    """The faces example as the API server understands it."""
    return json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", EXAMPLE))


def role_template(role, image=None):
    container = {"name": role, "resources": SMALL}
    if image:
        container["image"] = image
    return {"spec": {"containers": [container]}}


def short_job(name, steps=STEPS, workers=2):
    """The example's network and data over a few steps, with links that lose nothing and a plan that stays."""
    job = copy.deepcopy(example())
    job["metadata"] = {"name": name, "namespace": "research"}
    spec = job["spec"]
    del spec["training"]["epochs"], spec["training"]["evaluate"], spec["data"]["validation"]
    spec["training"]["steps"] = steps
    spec["split"] = {"cut": "relu1", "sharePercent": 75, "wire": {"activations": "Float32", "gradients": "Float32"}}
    spec["server"]["template"] = role_template("server")
    spec["workers"] = {"replicas": workers, "template": role_template("worker")}
    spec["checkpoint"] = {"everySteps": 20, "keep": 2, "gracePeriodSeconds": 30}
    return job


def run_as(user, job):
    for role in ("server", "workers"):
        job["spec"][role]["template"]["spec"]["securityContext"] = {"runAsUser": user}
    return job


def start(job):
    apply(job)
    return job["metadata"]["name"]


def remove(name):
    kubectl("delete", "tjob", name, "--ignore-not-found", "--wait=false")


def status(name):
    return (get("tjob", name) or {}).get("status", {})


def condition(name, kind):
    """The condition as an object; one that is Unknown where the job has none of this type."""
    for one in status(name).get("conditions", []):
        if one["type"] == kind:
            return one
    return {"status": "Unknown", "reason": "", "message": ""}


def holds(name, kind, value="True"):
    return condition(name, kind)["status"] == value


def pods(name, role=None):
    """The job's pods that nobody has asked to end, by name."""
    selector = f"outrigger.dev/job-name={name}" + (f",outrigger.dev/role={role}" if role else "")
    return {pod["metadata"]["name"]: pod for pod in get_all("pods", selector)
            if "deletionTimestamp" not in pod["metadata"]}


def uids(name, role=None):
    return {pod_name: pod["metadata"]["uid"] for pod_name, pod in pods(name, role).items()}


def metrics(name):
    """What the server wrote down, over all its lives."""
    path = VOLUMES / "runs" / name / "metrics.jsonl"
    if not path.exists():
        return []
    # The last line may be under way: who reads beside who writes sees a part of it.
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("}\n")]


def steps_done(name):
    return [line["step"] for line in metrics(name) if line["type"] == "step"]


def lives_that_trained(name):
    """How many of its servers have done a step; each begins with its plan, which stays in a short job."""
    types = [line["type"] for line in metrics(name) if line["type"] in ("plan", "step")]
    return sum(pair == ("plan", "step") for pair in zip(types, types[1:]))


def wait_until(name, what, seconds, probe):
    """As until(), but a job that has failed is not waited for."""
    def there():
        if holds(name, "Failed"):
            raise Over(f"{name} failed: {condition(name, 'Failed')}")
        return probe()

    return until(what, seconds, there)


def wait_for_step(name, step, seconds=120):
    wait_until(name, f"{name} is at step {step}", seconds, lambda: max(steps_done(name), default=-1) >= step)


def wait_for_end(name, seconds=600):
    """Waits for Complete and returns the status."""
    wait_until(name, f"{name} is complete", seconds, lambda: holds(name, "Complete"))
    return status(name)


def weights_hash(name):
    """SHA-256 of the tensors that the run ended with. The header names the job, and is left out."""
    content = (VOLUMES / "runs" / name / "weights.safetensors").read_bytes()
    header = int.from_bytes(content[:8], "little")
    return hashlib.sha256(content[8 + header:]).hexdigest()


def refused_edits(name, why):
    """Events of edits that its server did not take, whose text holds `why`."""
    return [event for event in get_all("events.events.k8s.io", "")
            if event["reason"] == "EditRefused" and event["regarding"]["name"] == name and why in event["note"]]


def server_page(name, path="/status"):
    """What the job's server says of itself over HTTP; Failed where none answers, as one that starts or ends."""
    failure = f"{name} has no server"
    for pod_name, pod in pods(name, "server").items():
        try:
            with urllib.request.urlopen(f"http://{pod['status']['podIP']}:8080{path}", timeout=5) as answer:
                return json.load(answer)
        except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
            failure = f"{pod_name} does not answer: {type(error).__name__} {error}"
    raise Failed(failure)


def server_says(name, path, *fields):
    """What is in a field of a page of the job's server, and in that; Failed where it is not there yet."""
    page = found = server_page(name, path)
    for field in fields:
        if not isinstance(found, dict) or field not in found:
            raise Failed(f"{path} of {name} has no {'.'.join(fields)}: {page}")
        found = found[field]
    return found


def joined(name):
    """The pods of the workers that are joined, as the server knew behind its last step; Failed where it does not say."""
    return {worker.split("/")[0] for worker in server_says(name, "/status", "workers", "names")}


def is_ready(pod):
    """Of a worker: it is joined, as it knows itself."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", []))


def without(name, lost):
    """The job's two workers by name, none with a uid among the lost, once they and no others are joined; else nothing."""
    workers = pods(name, "worker")
    # By name alone the server cannot tell one that was deleted by force from the next, which may be called the same.
    others = len(workers) == 2 and all(pod["metadata"]["uid"] not in lost and is_ready(pod) for pod in workers.values())
    return workers if others and joined(name) == set(workers) else None
