"""The scenarios of bench/plan/real.py and auto.py, and the plans that compete in each."""

import dataclasses
import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import quota  # noqa: E402
import training_run  # noqa: E402

MICRO_BATCHES = 8
UNLIMITED = 0


@dataclasses.dataclass(frozen=True)
class Scenario:
    model: str
    side: int
    channels: int
    photo: int        # side of the photos that are read
    micro_batch: int
    workers: int = 1
    cores: float = 1  # of each worker, of one that they share
    megabits: float = UNLIMITED
    frozen: str | None = None  # layers up to this one do not train
    cores_at_first: float | None = None  # of each worker, until the plan has settled
    workers_at_first: int | None = None  # likewise

    def changes(self):
        return self.cores_at_first is not None or self.workers_at_first is not None

    def at_first(self):
        """As it is until the plan has settled."""
        cores = self.cores if self.cores_at_first is None else self.cores_at_first
        workers = self.workers if self.workers_at_first is None else self.workers_at_first
        return dataclasses.replace(self, cores=cores, workers=workers, cores_at_first=None, workers_at_first=None)


LENET = Scenario("lenet5", 28, 1, 112, 32)
RESNET = Scenario("resnet18", 112, 3, 140, 4)
MOBILE = Scenario("mobilefacenet", 112, 3, 140, 4)
SCENARIOS = {
    "lenet5": LENET,
    "lenet5-slow": dataclasses.replace(LENET, cores=0.25),
    "lenet5-10-megabits": dataclasses.replace(LENET, megabits=10),
    "lenet5-two": dataclasses.replace(LENET, photo=35, workers=2, cores=0.5, megabits=100),
    "resnet18": RESNET,
    "resnet18-slow": dataclasses.replace(RESNET, cores=0.5, megabits=1000),
    "resnet18-100-megabits": dataclasses.replace(RESNET, megabits=100),
    "resnet18-frozen": dataclasses.replace(RESNET, frozen="layer1"),
    "mobilefacenet": MOBILE,
    "mobilefacenet-10-megabits": dataclasses.replace(MOBILE, megabits=10),
    "mobilefacenet-two": dataclasses.replace(MOBILE, workers=2, cores=0.5, megabits=1000),
    "mobilefacenet-frozen": dataclasses.replace(MOBILE, frozen="layers.3.layers.1.add", megabits=100),
}
# These change while the job runs.
CHANGES = {
    "lenet5-slowing": dataclasses.replace(LENET, cores=0.25, cores_at_first=1),
    "lenet5-recovering": dataclasses.replace(LENET, cores_at_first=0.25),
    "lenet5-leaving": dataclasses.replace(LENET, cores=0.3, workers_at_first=2),
    "lenet5-joining": dataclasses.replace(LENET, cores=0.3, workers=3, workers_at_first=1),
    "resnet18-slowing": dataclasses.replace(RESNET, cores=0.25, cores_at_first=1),
}


@dataclasses.dataclass(frozen=True)
class Plan:
    cut: str
    share: int      # percent
    local: int = 0  # percent of the other micro-batches' input that the server makes itself

    @classmethod
    def parse(cls, told):
        cut, *percent = told.split(":")
        share, local = [int(one) for one in percent] + [0] * (2 - len(percent))
        return cls(cut, share, local)

    def __str__(self):
        split = f"{self.cut} {self.share} %" if self.share else "Input"
        return f"{split}, {self.local} % of its input local" if self.local else split


UNSPLIT = Plan("Input", 0)


def make_job(scenario, data, output, cut="Auto"):
    model = {"name": scenario.model}
    if scenario.frozen:
        model["freezeUntil"] = scenario.frozen
    image = {"height": scenario.side, "width": scenario.side, "channels": scenario.channels}
    training = {"steps": 1000000, "batchSize": MICRO_BATCHES * scenario.micro_batch,
                "microBatchSize": scenario.micro_batch}
    return training_run.job(model, image, training, {"cut": cut}, data, output)


def plans_of_the_model(scenario, job, programs, scratch):
    """What `outrigger plan` says of these machines: the plans that it likes best, and the names of all cuts."""
    file = scratch / "planned.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    told = subprocess.run(
        ["taskset", "-c", str(training_run.two_cores()[0]), programs / "outrigger", "plan", file, "--workers",
         str(scenario.workers), "--worker-cores", str(scenario.cores), "--link", str(scenario.megabits or 10000),
         "--server-link", "100000", "--threads", "1", "-o", "json"], check=True, capture_output=True, text=True)
    table = json.loads(told.stdout)
    best = [plan_of(row["cut"], row["stemsAway"], row["localInputs"]) for row in table["best"]]
    return best, [cut["name"] for cut in table["profile"]["cuts"]]


def plan_of(cut, away, local):
    """By numbers of micro-batches."""
    others = MICRO_BATCHES - away
    return Plan(cut, 100 * away // MICRO_BATCHES, 100 * local // others if local else 0)


def rivals(scenario, job, programs, scratch):
    """The model's five best and three at random, of which every second may keep input local."""
    chosen, cuts = plans_of_the_model(scenario, job, programs, scratch)
    drawn = random.Random(scenario.model + str(scenario.megabits) + str(scenario.cores))
    others = [plan_of(cut, away, drawn.choice((0, drawn.randint(0, MICRO_BATCHES - away))))
              for cut in cuts[1:] for away in range(1, MICRO_BATCHES + 1)]
    others = [plan for plan in others if plan not in chosen]
    return chosen + drawn.sample(others, min(3, len(others)))


def throttle(workers, cores, stack):
    if cores >= 1:
        return
    for worker in workers:
        stack.enter_context(quota.cpu_quota(worker.child.pid, cores))


def that_can_run(arguments, scratch):
    """Of the scenarios that were asked for, each that can run here, with the faces that it reads."""
    for name in arguments.scenarios.split(","):
        scenario = (SCENARIOS | CHANGES)[name]
        if min(scenario.cores, scenario.at_first().cores) < 1 and not quota.is_possible():
            print(f"{name} left out: no cgroup to throttle its workers with")
            continue
        data = scratch / f"faces-{scenario.photo}"
        if not data.exists():
            training_run.draw_faces(arguments.programs, data, scenario.photo)
        yield name, data
