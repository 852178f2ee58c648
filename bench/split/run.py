#!/usr/bin/env python3
"""What it costs to be split: a server and a worker with a core each, beside one process on both.

Each side trains the same job; its rate is that of the steps after the first few, as its metrics.jsonl tells. The two
take turns, and what counts is the median of the rounds' ratios. Of a step's time the server's links may take a part only;
the worker's, which do not pack nor write what is small (its main thread does), and peak memory of each process are
printed beside it.

    bench/split/run.py [--cases lenet5-input,…] [--rounds 5]
"""

import argparse
import dataclasses
import pathlib
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import training_run  # noqa: E402

WARM_UP = 2  # steps that compile, fill caches and wait for the worker
INT8 = {"activations": "Int8", "gradients": "Int8"}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    side: int
    channels: int
    photo: int  # side of the photos that are read
    batch: int
    micro_batch: int
    steps: int
    split: dict
    target: float | None  # None: shown, not judged


CASES = {
    "lenet5-input": Case("lenet5", 28, 1, 35, 256, 32, 400, {"cut": "Input"}, 0.9),
    "lenet5-photos": Case("lenet5", 28, 1, 160, 256, 32, 60, {"cut": "Input"}, 0.9),
    "lenet5-auto": Case("lenet5", 28, 1, 112, 256, 32, 400, {"cut": "Auto"}, None),
    "lenet5-stem": Case("lenet5", 28, 1, 35, 256, 32, 400, {"cut": "pool1", "sharePercent": 100}, 0.8),
    # Behind this layer half of a step's time is over.
    "resnet18-stem": Case("resnet18", 112, 3, 140, 128, 16, 5, {"cut": "layer2.1.relu2", "sharePercent": 100}, 0.8),
    "resnet18-stem-int8": Case("resnet18", 112, 3, 140, 128, 16, 5,
                               {"cut": "layer2.1.relu2", "sharePercent": 100, "wire": INT8}, None),
    # Nearly all the work is the network's, and at cut 0 that is the server's alone: a second core cannot help it.
    "resnet18-input": Case("resnet18", 112, 3, 140, 128, 16, 5, {"cut": "Input"}, None),
}


@dataclasses.dataclass
class Measured:
    images_per_second: float
    server_mib: float
    worker_mib: float
    stall: float
    server_wire: float  # processor time of its links, of the time that passed
    worker_wire: float


def wire_shares(run, warm_up, steps):
    """What each process's links take of the time from the warm-up to nearly the end: the server's, its workers'."""
    processes = [run.server, *run.workers]
    taken = []
    for step in (warm_up, steps - max(1, steps // 10)):
        run.wait_for(lambda: len(run.steps()) >= step, f"step {step}")
        taken.append((time.monotonic(), [process.thread_seconds(training_run.WIRE) for process in processes]))
    (begin, before), (end, after) = taken
    return [(late - early) / (end - begin) for early, late in zip(before, after)]


def train(case, split_over, arguments, data, folder):
    """One run of the job; `split_over` are the two cores that server and worker get, or None for one process on both."""
    for warm_up in (WARM_UP, 8 * WARM_UP, 64 * WARM_UP):
        measured = train_once(case, split_over, arguments, data, folder, warm_up)
        if measured is not None:
            return measured
    raise training_run.Broken("the worker never joined in time")


def train_once(case, split_over, arguments, data, folder, warm_up):
    """None if the run was over before the worker was there."""
    training = {"steps": warm_up + max(4, int(case.steps * arguments.effort)), "batchSize": case.batch,
                "microBatchSize": case.micro_batch, "precision": arguments.precision}
    image = {"height": case.side, "width": case.side, "channels": case.channels}
    # One process is the local worker at cut 0, whatever the plan would be.
    job = training_run.job({"name": case.model}, image, training, case.split if split_over else {"cut": "Input"}, data,
                           folder / "out")
    with training_run.TrainingRun(job, folder, arguments.programs) as run:
        if split_over:
            run.start_server(1, split_over[:1])
            run.start_worker(1, split_over[1:])
        else:
            run.start_server(2, training_run.two_cores())
        server_wire, *worker_wire = wire_shares(run, warm_up, training["steps"])
        run.finish()
        steps = run.steps()[warm_up:]
        if split_over and run.joined() == 0:
            return None
    seconds = sum(step["seconds"] for step in steps)
    waited = sum(step["waitedForInput"] + step["waitedForGradients"] for step in steps)
    return Measured(len(steps) * case.batch / seconds, run.server.peak_kib / 1024,
                    run.workers[0].peak_kib / 1024 if split_over else 0, waited / seconds, server_wire,
                    sum(worker_wire))


def compare(name, arguments, table, scratch):
    case = CASES[name]
    data = scratch / f"faces-{case.photo}"
    if not data.exists():
        training_run.draw_faces(arguments.programs, data, case.photo)
    whole, halves = [], []
    for _ in range(arguments.rounds):
        whole.append(train(case, None, arguments, data, scratch))
        halves.append(train(case, training_run.two_cores(), arguments, data, scratch))
    ratio = figures.ratio_of([run.images_per_second for run in halves], [run.images_per_second for run in whole])
    narrow = ", int8" if "wire" in case.split else ""
    what = f"{case.model} at {case.side} of {case.photo}, cut {case.split['cut']}{narrow}: server + worker to one process"
    if case.target is None:
        table.figure(what, f"{ratio:.2f}x")
    else:
        table.ratio(what, ratio, case.target)
    for what, runs in (("one process", whole), ("server + worker", halves)):
        rate = statistics.median(run.images_per_second for run in runs)
        table.figure(f"  {what}", f"{rate:.0f} images/s")
        table.figure("    of its time the device waits", f"{statistics.median(run.stall for run in runs):.0%}")
        table.figure("    peak memory of the server", f"{max(run.server_mib for run in runs):.0f} MiB")
    wire = statistics.median(run.server_wire for run in halves)
    table.judge("    processor time of the server's links, of the time", f"{wire:.1%}", f"most {training_run.MOST_WIRE:.0%}",
                wire <= training_run.MOST_WIRE)
    table.figure("    of the worker's", f"{statistics.median(run.worker_wire for run in halves):.1%}")
    table.figure("    peak memory of the worker", f"{max(run.worker_mib for run in halves):.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--effort", type=float, default=1, help="multiplies the steps of a run")
    parser.add_argument("--precision", choices=("Float32", "BFloat16"), default="Float32")
    arguments = parser.parse_args()
    if training_run.two_cores() is None:
        print("left out: there is one core only")
        return 0
    print(f"Cores {training_run.two_cores()}, {arguments.precision}, median of {arguments.rounds} rounds in turn")
    table = figures.Table()
    with tempfile.TemporaryDirectory() as scratch:
        for name in arguments.cases.split(","):
            compare(name, arguments, table, pathlib.Path(scratch))
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
