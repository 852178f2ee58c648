#!/usr/bin/env python3
"""What `cut: Auto` is worth: the same job with it and with `cut: Input`, in turns, as a user would run both.

bench/plan/real.py holds the plan of one step against others; here the planner goes on, follows what the host and its
neighbours do, and its comparisons and moves are in the time. Both run in the scenarios of real.py that do not change.
The first 30 steps with `cut: Auto` do not count: until then a plan may be looked for. Wanted: 0.98 of cut Input's rate
everywhere, by the median of the rounds' ratios.

    bench/plan/auto.py [--scenarios lenet5,resnet18-slow,…] [--rounds 5] [--seconds 8]
"""

import argparse
import contextlib
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import training_run  # noqa: E402
from real_scenarios import SCENARIOS, make_job, that_can_run, throttle  # noqa: E402
from turns import LEAST_TO_UNSPLIT, SETTLE, Run, interval  # noqa: E402

FEWEST = 12  # steps that count
WARM_UP = 5  # that do not, where no plan is looked for


def step_seconds(scenario, cut, arguments, data, scratch):
    """The mean of the steps that count, and how many plans there were."""
    job = make_job(scenario, data, scratch / "out", cut)
    with training_run.TrainingRun(job, scratch, arguments.programs) as training, contextlib.ExitStack() as stack:
        run = Run(scenario, training, scratch)
        throttle(training.workers, scenario.cores, stack)
        training.wait_for(lambda: training.joined() >= scenario.workers, "the workers")
        first = len(training.steps()) + (SETTLE if cut == "Auto" else WARM_UP)

        def counted():
            return [step["seconds"] for step in training.steps()[first:]]

        training.wait_for(lambda: len(counted()) >= FEWEST and sum(counted()) >= arguments.seconds, "steps")
        return statistics.fmean(counted()), len(run.plans())


def compare(name, arguments, data, scratch, table):
    """In each round the one that was first is the second of the next, so that a host that becomes slower favours none."""
    scenario = SCENARIOS[name]
    ratios, plans = [], []
    for turn in range(arguments.rounds):
        took = {}
        for cut in ("Auto", "Input") if turn % 2 == 0 else ("Input", "Auto"):
            took[cut], count = step_seconds(scenario, cut, arguments, data, scratch)
            if cut == "Auto":
                plans.append(count)
        ratios.append(took["Input"] / took["Auto"])
    low, high = interval(ratios)
    middle = statistics.median(ratios)
    table.judge(f"{name}: images a second with cut Auto, to cut Input", f"{middle:.3f}x [{low:.2f} to {high:.2f}]",
                f"least {LEAST_TO_UNSPLIT}x", middle >= LEAST_TO_UNSPLIT)
    table.figure("    plans that each run had", ", ".join(map(str, plans)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8, help="of steps that count, at least, in each run")
    arguments = parser.parse_args()
    if training_run.two_cores() is None:
        print("left out: there is one core only")
        return 0
    print(f"Cores {training_run.two_cores()}, {arguments.rounds} rounds in turn, the median's interval in brackets")
    table = figures.Table()
    with tempfile.TemporaryDirectory() as scratch:
        for name, data in that_can_run(arguments, pathlib.Path(scratch)):
            compare(name, arguments, data, pathlib.Path(scratch), table)
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
