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
Finals last until the intervals in which those medians lie have decided, each plan's for itself, or for twice as long
as they must and three minutes: short steps can have many turns on a host whose cores are not always as fast.

Behind them, not of the twelve: scenarios in which a worker is throttled, one goes or two come while the job runs. There
the plan of 20 steps later counts. Links keep their rate: it is set when a process starts.

With `--plans` only these compete, beside cut Input, and the first of them stands for the automatic one: to learn of a
plan that was taken once, whatever is taken now.

    bench/plan/real.py [--scenarios lenet5,resnet18-slow,…] [--rounds 5] [--finals 10] [--plans Input:0:25,pool1:50]
"""

import argparse
import contextlib
import dataclasses
import itertools
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import training_run  # noqa: E402
from real_scenarios import CHANGES, SCENARIOS, UNSPLIT, Plan, make_job, rivals, that_can_run, throttle  # noqa: E402
from turns import LEAST_TO_UNSPLIT, SETTLE, Run, decided, interval, mean_step  # noqa: E402

OF_AUTO = 4        # further ones, so that it is
FOLLOW = 20        # likewise after a sudden change
AUTO_SECONDS = 20  # of steps under the planner, before others' plans: what it costs by then
MOST_PLANNING = 0.01
MOVING = 3        # first steps of a plan, in which what it needs is made
LEAST_TO_BEST = 1 / 1.05
UNDECIDED_FOR = 180  # seconds that finals go on for, at least, while nothing is decided


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


def hold_finals(run, result, turns, order):
    """Fresh figures of those that count, next to each other in time."""
    wanted = {}
    for plan, least in ((result.best(), LEAST_TO_BEST), (UNSPLIT, LEAST_TO_UNSPLIT)):
        if plan != result.automatic:
            wanted.setdefault(plan, []).append(least)
    result.finals = {plan: [] for plan in wanted}
    until = time.monotonic() + UNDECIDED_FOR
    for turn in itertools.count():
        if turn >= 2 * turns and time.monotonic() >= until:
            break
        still = [plan for plan, targets in wanted.items()
                 if turn < turns or not all(decided(result.finals[plan], least) for least in targets)]
        if not still:
            break
        finalists = [result.automatic, *still]
        took = {plan: mean_step(run.measure(plan)) for plan in order.sample(finalists, len(finalists))}
        for plan in still:
            result.finals[plan].append(took[plan] / took[result.automatic])


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
    plans = [*arguments.plans] or rivals(scenario, job, arguments.programs, scratch)
    if UNSPLIT not in plans:
        plans.append(UNSPLIT)
    with training_run.TrainingRun(job, scratch, arguments.programs) as training, contextlib.ExitStack() as stack:
        run = Run(scenario, training, scratch)
        settled = SETTLE
        if scenario.changes():
            settled = change(scenario, run, stack)
        else:
            throttle(training.workers, scenario.cores, stack)
        run.wait(settled + OF_AUTO)
        wait_for_planning(run)
        automatic = arguments.plans[0] if arguments.plans else plan_at(run, settled)
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
        marks = " (judged)" if plan == automatic else ""
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
    parser.add_argument("--finals", type=int, default=10, help="turns of the finalists, at least two; at least as many more while nothing is decided")
    parser.add_argument("--plans", type=lambda told: [Plan.parse(one) for one in told.split(",")], default=[],
                        help="CUT[:SHARE[:LOCAL]],…: percent of the stems away, and of the other inputs that stay local")
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
        for name, data in that_can_run(arguments, pathlib.Path(scratch)):
            scenario = (SCENARIOS | CHANGES)[name]
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
