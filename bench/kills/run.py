#!/usr/bin/env python3
"""How long the server waits when a worker is killed: SIGKILLs at random moments, over a job with two workers.

A killed worker is started again and the next kill waits until it has joined. What counts is the longest step of the run
over its median step: it must stay under one second or two steps, whichever is more.

    bench/kills/run.py [--kills 12]
"""

import argparse
import pathlib
import random
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import training_run  # noqa: E402

WARM_UP = 4  # steps that compile, before the first kill
CASES = {  # model, image, training, split: a light net whose steps are short, and one whose steps are long
    "lenet5": ({"name": "lenet5"}, {"height": 28, "width": 28, "channels": 1},
               {"batchSize": 256, "microBatchSize": 32}, {"cut": "pool1", "sharePercent": 75}),
    "resnet18": ({"name": "resnet18"}, {"height": 112, "width": 112, "channels": 3},
                 {"batchSize": 32, "microBatchSize": 4}, {"cut": "layer2.0.relu2", "sharePercent": 75}),
}


def kill_workers(run, kills, chosen):
    """Kills so many workers, one after another, and starts each again; what ran is waited for in between."""
    for number in range(kills):
        run.wait_for(lambda: run.joined() >= 2 + number, "the workers to join")
        time.sleep(chosen.uniform(0.1, 1.5))
        alive = [worker for worker in run.workers if worker.ended() is None]
        chosen.choice(alive).kill()
        run.start_worker(1)
    run.wait_for(lambda: run.joined() >= 2 + kills, "the last worker to join")


def disturb(name, kills, arguments, folder):
    """The seconds of every step after the first few, while workers are killed."""
    model, image, training, split = CASES[name]
    data = folder / "faces"
    training_run.draw_faces(arguments.programs, data, image["height"] * 5 // 4)
    job = training_run.job(model, image, {"steps": 1000000, **training}, split, data, folder / "out")
    with training_run.TrainingRun(job, folder, arguments.programs) as run:
        run.start_server(training_run.cores())
        run.start_worker(1)
        run.start_worker(1)
        run.wait_for(lambda: len(run.steps()) >= WARM_UP, "the first steps")
        kill_workers(run, kills, random.Random(arguments.seed))
        done = len(run.steps())
        run.wait_for(lambda: len(run.steps()) > done + 2, "two more steps")
        run.stop()
        return [step["seconds"] for step in run.steps()[WARM_UP:]]


def report(name, kills, table, seconds):
    usual = statistics.median(seconds)
    longest = max(seconds) - usual
    limit = max(1.0, 2 * usual)
    table.judge(f"{name}: longest wait over a step's {usual * 1e3:.0f} ms, {kills} workers killed", f"{longest:.2f} s",
                f"most {limit:.2f} s", longest < limit)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--kills", type=int, default=12, help="of each case")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    table = figures.Table()
    for name in arguments.cases.split(","):
        with tempfile.TemporaryDirectory() as folder:
            report(name, arguments.kills, table, disturb(name, arguments.kills, arguments, pathlib.Path(folder)))
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
