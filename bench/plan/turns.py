"""Plans that take turns in one run, which moves from one to the next: what their steps take. And what is wanted of one."""

import itertools
import json
import math
import pathlib
import statistics
import sys
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import training_run  # noqa: E402

SETTLE = 30  # steps after which the automatic plan must be in force
LEAST_TO_UNSPLIT = 0.98
CARRIED_OVER = 2  # first steps of a plan, which live on what was made before
BLOCK_STEPS = 4   # of a plan that count, at a time: at least so many,
BLOCK_SECONDS = 1  # and at least for so long
HOSTS_DOING = 0.05  # of a block's steps, the longest, do not count


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
            newest = itertools.takewhile(lambda step: step["plan"] == number, reversed(self.run.steps()))
            return [step["seconds"] for step in newest][::-1][CARRIED_OVER:]

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


def interval(ratios):
    """Where the median of all such ratios lies, with 95 % and more, whatever their distribution."""
    outside = max(0, int(len(ratios) / 2 - 0.98 * math.sqrt(len(ratios))))
    ordered = sorted(ratios)
    return ordered[outside], ordered[-1 - outside]


def decided(ratios, least):
    low, high = interval(ratios)
    return low >= least or high < least
