"""What happens to a job's pods changes nothing in what it learns: each run ends with the weights of an undisturbed one."""

import time

from cases.install import DATA, INSTALLED
from lib import jobs
from lib.harness import Target, expect, get, kubectl, until

UNDISTURBED = "a short job trains undisturbed"
TWO_SERVERS = "two servers train together"
STEPS_OF_TWO = 160
STRANGER = 54321  # a user that no image names


def undisturbed():
    jobs.start(jobs.short_job("steady"))
    jobs.wait_for_end("steady")
    expect(max(jobs.steps_done("steady")) == jobs.STEPS - 1, f"it did not do {jobs.STEPS} steps")


def expect_same_weights(name, truth="steady"):
    expect(jobs.weights_hash(name) == jobs.weights_hash(truth), f"the weights of {name} differ from those of {truth}")


def without_workers():
    """The plan stays, and the server does the workers' share itself."""
    name = jobs.start(jobs.short_job("alone", workers=0))
    jobs.wait_for_step(name, 5)
    plan = jobs.wait_until(name, "the server tells its plan", 60, lambda: jobs.server_page(name, "/plan"))
    expect(plan["cut"] == "relu1" and plan["sharePercent"] == 75, f"the plan is {plan}")
    status = jobs.wait_for_end(name)
    expect(not jobs.get_all("pods", f"outrigger.dev/job-name={name},outrigger.dev/role=worker"), "it has workers")
    expect(status["executionAttempts"] == 1 and jobs.condition(name, "Degraded")["status"] != "True", str(status))
    expect_same_weights(name)


def worker_deleted():
    name = jobs.start(jobs.short_job("worker-lost"))
    until("two workers are joined", 120, lambda: len(jobs.joined(name)) == 2)
    jobs.wait_for_step(name, 5)
    server, workers = jobs.uids(name, "server"), jobs.uids(name, "worker")
    target = Target()
    kubectl("delete", "pod", f"{name}-worker-0-0", "--force", "--grace-period=0")  # SIGKILL
    kubectl("delete", "pod", f"{name}-worker-1-0", "--wait=false")  # SIGTERM
    until("both are replaced and joined", 90, lambda: jobs.without(name, workers.values()))
    target.reached("two workers deleted, until two others are joined", 30)
    status = jobs.wait_for_end(name)
    pod = get("pod", f"{name}-server-0-0")
    expect(pod and pod["metadata"]["uid"] in server.values(), "the server's pod was replaced")
    expect(status.get("restarts", 0) == 0 and status["executionAttempts"] == 1, "the job was restarted")
    expect_same_weights(name)


def delete_server(name, pod, what):
    """Until others have done a step. The pods of the servers then, none of which is one of before."""
    # One that is gone before the status tells that servers are made is made again within the same attempt.
    jobs.wait_until(name, "the status tells of the servers", 60,
                    lambda: jobs.condition(name, "Running")["reason"] not in ("", "Creating"))
    before = jobs.uids(name, "server")
    target = Target()
    kubectl("delete", "pod", pod, "--force", "--grace-period=0")
    # Not that they are ready: what is left may take less than the time between two probes.
    jobs.wait_until(name, "the next servers have done a step", 120, lambda: jobs.lives_that_trained(name) == 2)
    target.reached(what, 60)
    after = jobs.uids(name, "server")
    expect(not set(after.values()) & set(before.values()), f"servers are the old ones: {before} and then {after}")
    return after


def expect_resumed(name, servers, truth="steady"):
    status = jobs.wait_for_end(name)
    # Only now: a kubelet tells that a container runs later than what that container has written can be read.
    for pod in servers:
        log = kubectl("logs", pod)
        expect("resuming from" in log, f"{pod} did not resume:\n{log[:1000]}")
    expect(status["executionAttempts"] == 2, f"{status['executionAttempts']} attempts")
    expect(jobs.steps_done(name).count(0) == 1, "the first step was done twice")
    expect_same_weights(name, truth)


def server_deleted():
    name = jobs.start(jobs.short_job("server-lost"))
    jobs.wait_for_step(name, 45)
    expect_resumed(name, delete_server(
        name, f"{name}-server-0-0", "the server deleted, until another has done a step"))


def suspended():
    name = jobs.start(jobs.run_as(STRANGER, jobs.short_job("paused")))
    jobs.wait_for_step(name, 30)
    target = Target()
    kubectl("patch", "tjob", name, "--type=merge", "-p", '{"spec": {"suspend": true}}')
    until("the job is Suspended", 120, lambda: jobs.holds(name, "Suspended"))
    target.reached("suspend, until a checkpoint is written and no pod is left", 45)
    expect(not jobs.get_all("pods", f"outrigger.dev/job-name={name}"), "pods are left")
    done = max(jobs.steps_done(name))
    time.sleep(3)
    expect(max(jobs.steps_done(name)) == done and not jobs.pods(name), "something went on while suspended")
    kubectl("patch", "tjob", name, "--type=merge", "-p", '{"spec": {"suspend": false}}')
    status = jobs.wait_for_end(name)
    expect(status.get("restarts", 0) == 0, "suspending counted as a restart")
    steps = jobs.steps_done(name)
    expect(steps == sorted(set(steps)), "a step was done twice: the checkpoint was not of the last one")
    users = {path.stat().st_uid for path in (jobs.VOLUMES / "runs" / name).rglob("*")}
    expect(users == {STRANGER}, f"its files belong to {users}")
    expect_same_weights(name)


def edited():
    """What is edited of a split reaches the server that runs; what it cannot do is told, and changes nothing."""
    name = jobs.start(jobs.short_job("edited", steps=100000))
    until("two workers are joined", 120, lambda: len(jobs.joined(name)) == 2)
    before = jobs.uids(name)
    target = Target()
    kubectl("patch", "tjob", name, "--type=merge", "-p", '{"spec": {"split": {"sharePercent": 25}}}')
    jobs.wait_until(name, "the server has the new share", 180,
                    lambda: jobs.server_says(name, "/plan", "sharePercent") == 25)
    target.reached("spec.split edited, until the server has it", 30)
    kubectl("patch", "tjob", name, "--type=merge", "-p", '{"spec": {"split": {"cut": "nowhere"}}}')
    until("the refusal is an event", 180, lambda: jobs.refused_edits(name, "nowhere"))
    plan = jobs.wait_until(name, "the server tells its plan", 60, lambda: jobs.server_page(name, "/plan"))
    expect(plan["sharePercent"] == 25 and plan["cut"] == "relu1", f"the plan is {plan}")
    expect(jobs.uids(name) == before, "pods were replaced")
    expect(jobs.status(name)["executionAttempts"] == 1, "the job was restarted")
    jobs.remove(name)


def own_server():
    """Our server's image stands for somebody's own loop: it reads the same environment."""
    job = jobs.short_job("own-server")
    job["spec"]["server"]["engine"] = "External"
    job["spec"]["server"]["template"] = jobs.role_template("server", jobs.status("steady")["images"]["server"])
    name = jobs.start(job)
    until("its server's pod is there", 60, lambda: jobs.pods(name, "server"))
    pod = jobs.pods(name, "server")[f"{name}-server-0-0"]
    expect("args" not in pod["spec"]["containers"][0], "the server was given arguments")
    jobs.wait_for_end(name)
    expect_same_weights(name)


def two_servers(name, workers):
    job = jobs.short_job(name, steps=STEPS_OF_TWO, workers=workers)
    job["spec"]["server"]["replicas"] = 2
    return job


def servers_together():
    name = jobs.start(two_servers("together", workers=0))
    status = jobs.wait_for_end(name)
    expect(set(jobs.pods(name, "server")) == {f"{name}-server-0-0", f"{name}-server-1-0"}, "not one pod for each server")
    expect(status["executionAttempts"] == 1, f"{status['executionAttempts']} attempts")
    expect(max(jobs.steps_done(name)) == STEPS_OF_TWO - 1, f"it did not do {STEPS_OF_TWO} steps")


def second_server_deleted():
    name = jobs.start(two_servers("one-lost", workers=2))
    jobs.wait_for_step(name, 30)
    after = delete_server(name, f"{name}-server-1-0", "one server of two deleted, until the next two have done a step")
    expect(len(after) == 2, f"the servers: {after}")
    expect_resumed(name, after, "together")


def tidy():
    kubectl("delete", "tjob", "--all", "--wait=false")
    until("every pod of every job is gone", 120, lambda: not jobs.get_all("pods", "outrigger.dev/job-name"))
    until("and every object that belonged to them", 120, lambda: not any(
        jobs.get_all(kind, "app.kubernetes.io/managed-by=outrigger")
        for kind in ("services", "configmaps", "secrets", "networkpolicies")))


CASES = [
    (UNDISTURBED, [INSTALLED, DATA], undisturbed),
    ("workers deleted in mid-step: the same server, the same weights", [UNDISTURBED], worker_deleted),
    ("the server deleted: it resumes from its checkpoint, the same weights", [UNDISTURBED], server_deleted),
    ("no workers: the same weights", [UNDISTURBED], without_workers),
    ("suspend and resume, as a user that no image names: the same weights", [UNDISTURBED], suspended),
    ("an edited split reaches the server that runs", [UNDISTURBED], edited),
    ("engine: External, told all by its environment: the same weights", [UNDISTURBED], own_server),
    (TWO_SERVERS, [INSTALLED, DATA], servers_together),
    ("one server of two deleted: both resume, the same weights", [TWO_SERVERS], second_server_deleted),
]
LAST = ("deleted jobs take everything of theirs with them", [INSTALLED], tidy)
