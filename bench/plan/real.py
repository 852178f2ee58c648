#!/usr/bin/env python3
"""The automatic plan on this machine, beside plans that the model thinks best and some drawn at random.

A server and its workers have a core each; workers may be throttled, links narrow. A run starts with `cut: Auto`. Once
that has settled, the plans take turns in the same run (POST /plan), the automatic one among them, for a few steps
each, whose mean counts: where every third step waits the others are no consolation. The others are the five that the
simulator likes best, whatever their cuts, shares and local inputs, cut Input, and three drawn ones. Of so many the best
is also the luckiest, so it only says who is in the finals: there the automatic plan, the best and cut Input take turns
once more, and the median of the finals' ratios counts. Wanted: within 5 % of the best in 11 of 12 scenarios, in force
after 30 steps; 0.98 of cut Input everywhere; comparing plans and moving to them takes under 1 % of the time until then;
and the server's links no more of its processor's time, while the automatic plan has its turns, than they may.
Finals last until the intervals in which those medians lie have decided, or for twice as long as they must.

Behind them, not of the twelve: scenarios in which a worker is throttled, one goes or two come while the job runs. There
the plan of 20 steps later counts. Links keep their rate: it is set when a process starts.

    bench/plan/real.py [--scenarios lenet5,resnet18-slow,…] [--rounds 5] [--finals 10]
"""

import argparse
import contextlib
import dataclasses
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import quota  # noqa: E402
import training_run  # noqa: E402

SETTLE = 30        # steps after which the automatic plan must be in force
OF_AUTO = 4        # further ones, so that it is
FOLLOW = 20        # likewise after a sudden change
AUTO_SECONDS = 20  # of steps under the planner, before others' plans: what it costs by then
MOST_PLANNING = 0.01
MOVING = 3        # first steps of a plan, in which what it needs is made
CARRIED_OVER = 2  # first steps of a plan, which live on what was made before
BLOCK_STEPS = 4   # of a plan that count, at a time: at least so many,
BLOCK_SECONDS = 1  # and at least for so long
HOSTS_DOING = 0.05  # of a block's steps, the longest, do not count
LEAST_TO_BEST = 1 / 1.05
LEAST_TO_UNSPLIT = 0.98
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

    def __str__(self):
        split = f"{self.cut} {self.share} %" if self.share else "Input"
        return f"{split}, {self.local} % of its input local" if self.local else split


UNSPLIT = Plan("Input", 0)


def make_job(scenario, data, output):
    model = {"name": scenario.model}
    if scenario.frozen:
        model["freezeUntil"] = scenario.frozen
    image = {"height": scenario.side, "width": scenario.side, "channels": scenario.channels}
    training = {"steps": 1000000, "batchSize": MICRO_BATCHES * scenario.micro_batch,
                "microBatchSize": scenario.micro_batch}
    return training_run.job(model, image, training, {"cut": "Auto"}, data, output)


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
    """The model's five best, cut Input, and three at random, of which every second may keep input local."""
    chosen, cuts = plans_of_the_model(scenario, job, programs, scratch)
    if UNSPLIT not in chosen:
        chosen.append(UNSPLIT)
    drawn = random.Random(scenario.model + str(scenario.megabits) + str(scenario.cores))
    others = [plan_of(cut, away, drawn.choice((0, drawn.randint(0, MICRO_BATCHES - away))))
              for cut in cuts[1:] for away in range(1, MICRO_BATCHES + 1)]
    others = [plan for plan in others if plan not in chosen]
    return chosen + drawn.sample(others, min(3, len(others)))


class Run:
    """A training whose plan is moved from outside."""

    def __init__(self, scenario, run, scratch):
        self.run = run
        self.cores = training_run.two_cores()
        self.wires = {}  # of each plan: seconds of its steps, and processor seconds of the server's links in them
        self.link = ["--link-megabits", scenario.megabits]
        control = scratch / "control"
        control.write_text("bench-control\n", encoding="utf-8")
        run.start_server(1, self.cores[:1], [*self.link, "--control-token-file", control])
        self.start_workers(scenario.at_first().workers)

    def start_workers(self, count):
        for _ in range(count):
            self.run.start_worker(1, self.cores[1:], self.link)

    def wait(self, steps):
        self.run.wait_for(lambda: len(self.run.steps()) >= steps, f"step {steps}")

    def plans(self):
        """Number of each plan so far: what it is."""
        return {event["plan"]: event for event in self.run.events("plan")}

    def move(self, plan):
        """The number of the plan that it has become."""
        port = json.loads((self.run.output / "server.json").read_text(encoding="utf-8"))["statusPort"]
        split = {"cut": plan.cut, "sharePercent": plan.share} if plan.share else {"cut": "Input"}
        split["localInputPercent"] = plan.local
        request = urllib.request.Request(f"http://127.0.0.1:{port}/plan", json.dumps(split).encode(), method="POST",
                                         headers={"Authorization": "Bearer bench-control"})
        before = max(self.plans())
        urllib.request.urlopen(request, timeout=60).close()
        self.run.wait_for(lambda: max(self.plans()) > before, f"plan {plan}")
        return max(self.plans())

    def measure(self, plan):
        """Seconds of a few steps under the plan."""
        number = self.move(plan)

        def block():
            return [step["seconds"] for step in self.run.steps() if step["plan"] == number][CARRIED_OVER:]

        self.run.wait_for(block, f"the first steps of plan {plan}")
        before = self.wire_clock()
        self.run.wait_for(lambda: len(block()) >= BLOCK_STEPS and sum(block()) >= BLOCK_SECONDS,
                          f"steps of plan {plan}")
        taken = [late - early for early, late in zip(before, self.wire_clock())]
        self.wires[plan] = [sum(both) for both in zip(self.wires.get(plan, (0, 0)), taken)]
        return block()

    def wire_clock(self):
        return time.monotonic(), self.run.server.thread_seconds(training_run.WIRE)


def mean_step(block):
    """Seconds of a step under a plan, by a block of them."""
    counted = sorted(block)[:len(block) - int(HOSTS_DOING * len(block))]
    return statistics.fmean(counted)


def plan_at(run, step):
    event = run.plans()[run.run.steps()[step]["plan"]]
    return Plan(event["cut"], 100 * event["stemsAway"] // event["microBatches"], event["localInputPercent"])


@dataclasses.dataclass
class Planning:
    """What it cost to find plans, of the time of steps."""
    comparing: float
    moving: float  # what the first steps behind every move took beyond their plan's median

    def all(self):
        return self.comparing + self.moving


def steps_of_plans(run):
    """Seconds of the steps of every plan so far, in order."""
    steps = {}
    for step in run.run.steps():
        steps.setdefault(step["plan"], []).append(step["seconds"])
    return list(steps.values())


def excess(seconds):
    """Of a plan's first steps, each that took longer than the median of those next to it: a step that lives on what was
    made before pays for no other. As many steps behind them are taken off, for what is only noise."""
    near = seconds[:SETTLE]
    median = statistics.median(near)
    longer = [max(0, one - median) for one in near]
    return max(0, sum(longer[:MOVING]) - sum(longer[MOVING:2 * MOVING]))


def planning_so_far(run):
    steps = run.run.steps()
    took = sum(step["seconds"] for step in steps)
    _, *moves = steps_of_plans(run)
    return Planning(sum(step["planningSeconds"] for step in steps) / took,
                    sum(excess(seconds) for seconds in moves) / took)


def wait_for_planning(run):
    """Until there have been steps for long enough, and enough of the newest plan to tell what the move to it took."""
    run.run.wait_for(lambda: sum(step["seconds"] for step in run.run.steps()) >= AUTO_SECONDS and
                     len(steps_of_plans(run)[-1]) >= 2 * MOVING + 1, "steps")


def moves_so_far(run):
    """The first step of each plan, and why it was moved to."""
    first = {}
    for step in run.run.steps():
        first.setdefault(step["plan"], step["step"])
    return [(first[number], event["reason"]) for number, event in run.plans().items() if number in first]


@dataclasses.dataclass
class Result:
    automatic: Plan
    counted_at: int  # the step by which it had to be in force
    moves: list      # before others' plans
    blocks: dict     # of every plan: seconds of the steps of each block
    finals: dict     # of finalists, in every turn: a step's time to the automatic plan's
    planning: Planning
    wire: float = 0  # the server's links, of its processor's time, under the automatic plan

    def usual(self, plan):
        return statistics.median(map(mean_step, self.blocks[plan]))

    def best(self):
        return min(self.blocks, key=self.usual)


def interval(ratios):
    """Where the median of all such ratios lies, with 95 % and more, whatever their distribution."""
    outside = max(0, int(len(ratios) / 2 - 0.98 * math.sqrt(len(ratios))))
    ordered = sorted(ratios)
    return ordered[outside], ordered[-1 - outside]


def decided(ratios, least):
    low, high = interval(ratios)
    return low >= least or high < least


def hold_finals(run, result, turns, order):
    """Fresh figures of those that count, next to each other in time."""
    best = result.best()
    finalists = list(dict.fromkeys([result.automatic, best, UNSPLIT]))
    result.finals = {plan: [] for plan in finalists}
    if len(finalists) == 1:
        return
    for turn in range(2 * turns):
        if turn >= turns and decided(result.finals[best], LEAST_TO_BEST) and \
                decided(result.finals[UNSPLIT], LEAST_TO_UNSPLIT):
            break
        took = {plan: mean_step(run.measure(plan)) for plan in order.sample(finalists, len(finalists))}
        for plan in finalists:
            result.finals[plan].append(took[plan] / took[result.automatic])


def throttle(workers, cores, stack):
    if cores >= 1:
        return
    for worker in workers:
        stack.enter_context(quota.cpu_quota(worker.child.pid, cores))


def change(scenario, run, stack):
    """Lets the plan settle with the first cores and workers, then changes them; the step by which it must have followed.
    A worker has come when it has joined."""
    before, training = scenario.at_first(), run.run
    with contextlib.ExitStack() as first:
        throttle(training.workers, before.cores, first)
        training.wait_for(lambda: training.joined() >= before.workers, "the first workers")
        run.wait(len(training.steps()) + SETTLE + FOLLOW)
    throttle(training.workers[:scenario.workers], scenario.cores, stack)
    for worker in training.workers[scenario.workers:]:
        worker.kill()
    more = scenario.workers - before.workers
    run.start_workers(max(0, more))
    throttle(training.workers[before.workers:], scenario.cores, stack)
    training.wait_for(lambda: training.joined() >= before.workers + max(0, more), "more workers")
    return len(training.steps()) + FOLLOW


def compete(scenario, arguments, scratch, data):
    job = make_job(scenario, data, scratch / "out")
    plans = rivals(scenario, job, arguments.programs, scratch)
    with training_run.TrainingRun(job, scratch, arguments.programs) as training, contextlib.ExitStack() as stack:
        run = Run(scenario, training, scratch)
        settled = SETTLE
        if scenario.changes():
            settled = change(scenario, run, stack)
        else:
            throttle(training.workers, scenario.cores, stack)
        run.wait(settled + OF_AUTO)
        wait_for_planning(run)
        automatic = plan_at(run, settled)
        planning, moves = planning_so_far(run), moves_so_far(run)
        if automatic not in plans:
            plans.append(automatic)
        blocks = {plan: [] for plan in plans}
        order = random.Random(1)
        for _ in range(arguments.rounds):
            for plan in order.sample(plans, len(plans)):
                blocks[plan].append(run.measure(plan))
        result = Result(automatic, settled, moves, blocks, {}, planning)
        hold_finals(run, result, arguments.finals, order)
        passed, of_links = run.wires[automatic]
        result.wire = of_links / passed
    return result


def of_finals(result, plan):
    """A finalist's time to the automatic plan's, and the same with the interval in which it lies."""
    if plan == result.automatic:
        return 1, "1.000x"
    ratios = result.finals[plan]
    middle = statistics.median(ratios)
    low, high = interval(ratios)
    return middle, f"{middle:.3f}x [{low:.2f} to {high:.2f}]"


def judge(name, result, table):
    for step, reason in result.moves:
        print(f"    from step {step}: {reason}")
    print(f"    the plan of step {result.counted_at} counts")
    automatic, best = result.automatic, result.best()
    for plan in sorted(result.blocks, key=result.usual):
        low, _, high = statistics.quantiles(sum(result.blocks[plan], []), n=4)
        marks = " (automatic)" if plan == automatic else ""
        table.figure(f"    {plan}{marks}", f"{1e3 * result.usual(plan):.0f} ms [{1e3 * low:.0f} to {1e3 * high:.0f}]")
    ratio, told = of_finals(result, best)
    table.judge(f"{name}: {automatic}; the best: {best}", told, f"least {LEAST_TO_BEST:.3f}x",
                ratio >= LEAST_TO_BEST)
    unsplit, told = of_finals(result, UNSPLIT)
    table.judge("  to cut Input", told, f"least {LEAST_TO_UNSPLIT}x", unsplit >= LEAST_TO_UNSPLIT)
    table.judge("  processor time of the server's links, of the time", f"{result.wire:.1%}",
                f"most {training_run.MOST_WIRE:.0%}", result.wire <= training_run.MOST_WIRE)
    planning = result.planning
    table.figure("    comparing plans, of the time", f"{100 * planning.comparing:.2f} %")
    table.figure("    moving to them", f"{100 * planning.moving:.2f} %")
    row = "  comparing plans and moving to them, of the time", f"{100 * planning.all():.2f} %"
    if name in CHANGES:  # a change has its price
        table.figure(*row)
    else:
        table.judge(*row, f"most {100 * MOST_PLANNING:.0f} %", planning.all() <= MOST_PLANNING)
    return ratio >= LEAST_TO_BEST, 0 < best.share < 100, unsplit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS | CHANGES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--finals", type=int, default=10, help="turns of the finalists, at least two; as many more while nothing is decided")
    arguments = parser.parse_args()
    if arguments.finals < 2:
        parser.error("--finals: two turns or more tell how far their ratios spread")
    if training_run.two_cores() is None:
        print("left out: there is one core only")
        return 0
    print(f"Cores {training_run.two_cores()}, {arguments.rounds} rounds in turn, quartiles of the steps in brackets, in finals the median's interval")
    table = figures.Table()
    told = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.scenarios.split(","):
            scenario = (SCENARIOS | CHANGES)[name]
            if min(scenario.cores, scenario.at_first().cores) < 1 and not quota.is_possible():
                print(f"{name} left out: no cgroup to throttle its workers with")
                continue
            data = pathlib.Path(scratch) / f"faces-{scenario.photo}"
            if not data.exists():
                training_run.draw_faces(arguments.programs, data, scenario.photo)
            verdict = judge(name, compete(scenario, arguments, pathlib.Path(scratch), data), table)
            if name in SCENARIOS:
                told.append(verdict)
    if not told:
        return 0
    met = sum(within for within, _, _ in told)
    table.judge("scenarios whose automatic plan is within 5 % of the best", f"{met} of {len(told)}", "least 11 of 12",
                12 * met >= 11 * len(told))
    table.figure("  with a cut and a share between 0 and 100 % best", f"{sum(split for _, split, _ in told)}")
    table.figure("  always cut Input instead takes", f"{statistics.fmean(unsplit for _, _, unsplit in told):.2f}x")
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
