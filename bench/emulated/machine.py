"""Runs of a job on emulated machines: real processes, ledger and links, arithmetic that only takes its time."""

import dataclasses
import json
import statistics
import subprocess

import training_run

BATCH = 256
MICRO_BATCH = 32
MICRO_BATCHES = BATCH // MICRO_BATCH
SEEDS = 10


@dataclasses.dataclass(frozen=True)
class Machines:
    """What the machines are worth, in cores that take a second for a second of the profile."""

    workers: int
    worker_cores: int = 1
    device: int = 8
    server_cores: int = 1
    link_milliseconds: int = 0


@dataclasses.dataclass(frozen=True)
class Times:
    """Core-seconds of a micro-batch; a quarter of the network's lies before the cut `pool1`."""

    network: float
    decode: float


def make_job(split, steps, data, output):
    training = {"steps": steps, "batchSize": BATCH, "microBatchSize": MICRO_BATCH}
    return training_run.job({"name": "lenet5"}, {"height": 28, "width": 28, "channels": 1}, training, split, data, output)


GPU_BATCH = 512


def make_gpu_job(steps, data, output):
    """What the profile of an H200 was taken of (`outrigger plan --device cuda -o json`)."""
    training = {"steps": steps, "batchSize": GPU_BATCH, "microBatchSize": 64, "precision": "BFloat16"}
    return training_run.job({"name": "mobilefacenet"}, {"height": 112, "width": 112, "channels": 3}, training,
                            {"cut": "Auto"}, data, output)


def make_profile(job, times, programs, scratch):
    """The job's own profile with other times: bytes and layers stay what they are."""
    job_file = scratch / "profiled.json"
    job_file.write_text(json.dumps(job), encoding="utf-8")
    told = subprocess.run([programs / "outrigger", "plan", job_file, "-o", "json"], check=True, capture_output=True,
                          text=True)
    profile = json.loads(told.stdout)["profile"]
    layers = profile["layers"]
    before = next(cut["layers"] for cut in profile["cuts"] if cut["name"] == "pool1")
    for place, layer in enumerate(layers):
        part = times.network / 4 / before if place < before else times.network * 3 / 4 / (len(layers) - before)
        layer["forward"], layer["backward"] = part / 3, part * 2 / 3
    for cut in profile["cuts"]:
        stem, head = layers[:cut["layers"]], layers[cut["layers"]:]
        cut["stemForward"] = sum(layer["forward"] for layer in stem)
        cut["stemBackward"] = sum(layer["backward"] for layer in stem) if cut["trains"] else 0
        cut["head"] = sum(layer["forward"] + layer["backward"] for layer in head)
    profile["decode"] = times.decode
    del profile["linkWork"]  # of links that run on this machine's cores, not on those that are emulated
    file = scratch / "profile.json"
    file.write_text(json.dumps(profile), encoding="utf-8")
    return file


@dataclasses.dataclass
class Steps:
    seconds: list

    @property
    def mean(self):
        return statistics.fmean(self.seconds)

    @property
    def p99(self):
        return sorted(self.seconds)[max(0, -(-99 * len(self.seconds) // 100) - 1)]


def run(job, profile, machines, warm_up, programs, scratch):
    """Trains the job on emulated machines; the steps behind the first few, and the run's trace."""
    common = ["--emulate", profile, "--link-milliseconds", machines.link_milliseconds]
    with training_run.TrainingRun(job, scratch, programs) as training:
        training.start_server(machines.server_cores, options=[*common, "--emulate-cores", machines.device])
        for _ in range(machines.workers):
            training.start_worker(1, options=[*common, "--emulate-cores", machines.worker_cores])
        training.finish()
        trace = json.loads((training.output / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
        return Steps([step["seconds"] for step in training.steps()[warm_up:]]), trace


DECODE_PARTS = 8


def jitter_of(traces):
    """By how many percent the parts that a micro-batch is decoded in took more or less, evenly spread and each for itself, in
    these runs. By the middle half of them: a simulated machine never stands still."""
    decodes = [event["dur"] for trace in traces for event in trace if event["name"] == "decode"]
    low, middle, high = statistics.quantiles(decodes, n=4)
    deviation = (high - low) / 1.349 / middle
    return 100 * deviation * (3 * DECODE_PARTS) ** 0.5


def simulate(profile, machines, steps, programs, scratch, jitter=1):
    """The same in virtual time: the mean of what runs with several seeds tell. A run in which short and long steps take
    turns may keep to that for thousands of steps; as many short real ones do not."""
    told = [simulate_once(profile, machines, steps, seed, jitter, programs, scratch) for seed in range(1, 1 + SEEDS)]
    return {figure: statistics.fmean(run[figure] for run in told) for figure in told[0]}


def simulate_once(profile, machines, steps, seed, jitter, programs, scratch):
    cluster = {
        "profile": profile.name,
        "server": {"cores": machines.server_cores, "device": machines.device, "megabits": 10000},
        "workers": [{"name": "worker", "count": machines.workers, "cores": machines.worker_cores, "megabits": 10000,
                     "milliseconds": max(0.05, machines.link_milliseconds)}],
        "steps": steps,
        "jitterPercent": jitter,
        "seed": seed,
    }
    file = scratch / "cluster.json"
    file.write_text(json.dumps(cluster), encoding="utf-8")
    told = subprocess.run([programs / "outrigger", "plan", "--simulate", file, "-o", "json"], check=True,
                          capture_output=True, text=True)
    return json.loads(told.stdout)["secondsPerStep"]
