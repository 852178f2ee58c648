#!/usr/bin/env python3
"""A fast device and many workers on few cores: real processes that only take their time (--emulate).

Five parts: whether the simulator tells what real runs take; whether it does so of a GPU that was measured elsewhere; what 5 ms of delay on every link cost a step with a
trained stem away; whether many workers join quickly and none goes hungry; and what evaluations cost a run, made by the
server, by workers beside training, and by whom it chooses.

    bench/emulated/run.py [--parts simulator,gpu,hiding,crowd,evaluation] [--effort 1] [--workers 1,2,4,8,16] [--crowd 128]
"""

import argparse
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402
import training_run  # noqa: E402

import machine  # noqa: E402

WARM_UP = 12
FOUND = 60  # steps after which a planner has its plan
UNCOUNTED = 50  # steps that a simulation leaves out, being of a start (of less than 100, half of them)
HALF_AWAY = {"cut": "pool1", "sharePercent": 50}


def runs_for(effort):
    """Whose steps count together: one run of so few has hardly a slowest one in a hundred."""
    return 5 if effort >= 0.5 else 1


def steps_for(mean, effort):
    """Of a run, so that all of them together have 120 s of steps, at most 600."""
    return WARM_UP + max(6, int(effort * min(600, max(100, 120 / mean)) / runs_for(effort)))


def compare_with_simulator(arguments, table, data, scratch):
    times = machine.Times(network=0.16, decode=0.1)
    for split, name in (({"cut": "Input"}, "cut Input"), (HALF_AWAY, "half of the stems away")):
        profile = machine.make_profile(machine.make_job(split, 1, data, scratch / "out"), times, arguments.programs, scratch)
        for workers in arguments.workers:
            machines = machine.Machines(workers=workers)
            mean = machine.simulate(profile, machines, 100, arguments.programs, scratch)["mean"]
            steps = steps_for(mean, arguments.effort)
            job = machine.make_job(split, steps, data, scratch / "out")
            runs = [machine.run(job, profile, machines, WARM_UP, arguments.programs, scratch) for _ in range(runs_for(arguments.effort))]
            real = machine.Steps([seconds for steps, _ in runs for seconds in steps.seconds])
            jitter = machine.jitter_of([trace for _, trace in runs])
            told = machine.simulate(profile, machines, UNCOUNTED + len(real.seconds), arguments.programs, scratch, jitter)
            off = told["mean"] / real.mean - 1
            table.judge(f"{name}, {workers} workers: {1e3 * real.mean:.0f} ms a step, simulated {1e3 * told['mean']:.0f}",
                        f"{100 * off:+.1f} %", "most 5 % off", abs(off) <= 0.05)
            off = told["p99"] / real.p99 - 1
            table.judge(f"  99th percentile of {len(real.seconds)} steps: {1e3 * real.p99:.0f} ms, simulated {1e3 * told['p99']:.0f}",
                        f"{100 * off:+.1f} %", "most 10 % off", abs(off) <= 0.10)
            table.figure("    pieces of work were jittered as in the real runs, by", f"{jitter:.2f} %")


H200 = pathlib.Path(__file__).resolve().parent / "h200_mobilefacenet.json"


def emulate_a_gpu(arguments, table, data, scratch):
    """17,000 images a second: the plan that the planner finds, real links, and the host's part of every step."""
    profile = scratch / H200.name
    profile.write_text(H200.read_text(encoding="utf-8"), encoding="utf-8")
    steps = FOUND + max(30, int(150 * arguments.effort))
    for workers in (2, 4):
        machines = machine.Machines(workers=workers, worker_cores=4, server_cores=4, device=1)
        job = machine.make_gpu_job(steps, data, scratch / "out")
        real, _ = machine.run(job, profile, machines, FOUND, arguments.programs, scratch)
        told = machine.simulate(profile, machines, steps, arguments.programs, scratch)
        off = told["mean"] / real.mean - 1
        rates = [machine.GPU_BATCH / seconds for seconds in (real.mean, told["mean"])]
        table.judge("an H200, mobilefacenet, {} workers of 4 cores: {:.0f} images/s, simulated {:.0f}".format(workers, *rates),
                    f"{100 * off:+.1f} %", "most 5 % off", abs(off) <= 0.05)


STEMS = ("stem forward", "stem backward")
LINKS = ("send", "weights", "cut gradient")


def overlap(trace, names):
    """Of the time that these pieces take, the part in which the device works too."""
    device = sorted((event["ts"], event["ts"] + event["dur"]) for event in trace if event["name"] == "micro-batch")
    pieces = [(event["ts"], event["ts"] + event["dur"]) for event in trace if event["name"] in names]
    both = sum(max(0, min(end, until) - max(begin, since)) for begin, end in pieces for since, until in device)
    return both / sum(end - begin for begin, end in pieces)


def hide_a_delay(arguments, table, data, scratch):
    steps = WARM_UP + max(6, int(40 * arguments.effort))
    job = machine.make_job(HALF_AWAY, steps, data, scratch / "out")
    profile = machine.make_profile(job, machine.Times(network=0.48, decode=0.1), arguments.programs, scratch)
    near, far = [], []
    for _ in range(max(1, round(3 * arguments.effort))):
        for runs, delay in ((near, 0), (far, 5)):
            machines = machine.Machines(workers=4, link_milliseconds=delay)
            runs.append(machine.run(job, profile, machines, WARM_UP, arguments.programs, scratch))
    mean = [steps.mean for steps, _ in near]
    table.ratio(f"5 ms of delay each way, a step of {1e3 * min(mean):.0f} ms: rate to that without",
                figures.ratio_of(mean, [steps.mean for steps, _ in far]), 0.95)
    table.figure("  of the workers' time on stems, the device works too", f"{overlap(far[-1][1], STEMS):.0%}")
    table.figure("  of the links' time, both ways", f"{overlap(far[-1][1], LINKS):.0%}")


def gather_a_crowd(arguments, table, data, scratch):
    job = machine.make_job({"cut": "Input"}, 100000, data, scratch / "out")
    profile = machine.make_profile(job, machine.Times(network=0.8, decode=0), arguments.programs, scratch)
    common = ["--emulate", profile]
    with training_run.TrainingRun(job, scratch, arguments.programs) as run:
        run.start_server(1, options=common + ["--emulate-cores", 8])
        run.wait_for(lambda: run.steps(), "the first step")
        begin = time.monotonic()
        for _ in range(arguments.crowd):
            run.start_worker(1, options=common + ["--emulate-cores", 1000000])
        run.wait_for(lambda: run.joined() >= arguments.crowd, f"{arguments.crowd} workers")
        took = time.monotonic() - begin
        table.judge(f"{arguments.crowd} workers have joined after", f"{took:.1f} s", "most 10 s", took <= 10)
        enough = len(run.steps()) + 4 * arguments.crowd // machine.MICRO_BATCHES
        run.wait_for(lambda: len(run.steps()) > enough, "work for all of them")
        time.sleep(3)  # what each has made is told every two seconds
        text = (run.output / "metrics.jsonl").read_text(encoding="utf-8")
        told = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines() if '"workers"' in line]
        made = [one["microBatches"] for one in [line for line in told if line["type"] == "workers"][-1]["workers"]]
        hungry = sum(count == 0 for count in made)
        table.judge("  of them have had no work", str(hungry), "most 0", hungry == 0 and len(made) == arguments.crowd)
        run.stop()


def seconds_of_run(job, profile, machines, arguments, scratch):
    """From the first step to the end."""
    common = ["--emulate", profile]
    with training_run.TrainingRun(job, scratch, arguments.programs) as run:
        run.start_server(machines.server_cores, options=[*common, "--emulate-cores", machines.device])
        for _ in range(machines.workers):
            run.start_worker(1, options=[*common, "--emulate-cores", machines.worker_cores])
        run.wait_for(lambda: run.steps(), "the first step")
        begin = time.monotonic()
        run.finish()
        return time.monotonic() - begin


def evaluate_beside(arguments, table, data, scratch):
    steps, every = max(30, int(90 * arguments.effort)), 10
    for workers, what in ((8, "workers with time to spare"), (3, "workers without")):
        runs = {"Server": [], "Workers": [], "Auto": []}
        for _ in range(max(1, round(5 * arguments.effort))):
            for place, seconds in runs.items():
                # Workers that run stems may score.
                job = machine.make_job({"cut": "pool1", "sharePercent": 25}, steps, data, scratch / "out")
                job["spec"]["data"]["validation"] = job["spec"]["data"]["train"]
                job["spec"]["training"]["evaluate"] = {"everySteps": every, "keepBest": False, "place": place}
                profile = machine.make_profile(job, machine.Times(network=0.16, decode=0.08), arguments.programs, scratch)
                machines = machine.Machines(workers=workers)
                seconds.append(seconds_of_run(job, profile, machines, arguments, scratch))
        best = [min(pair) for pair in zip(runs["Server"], runs["Workers"])]
        table.figure(f"{workers} {what}: rate, evaluated by them, to that by the server",
                     f"{figures.ratio_of(runs['Server'], runs['Workers']):.2f}x")
        # It has to try the dearer place once.
        table.ratio("  chosen by itself, to the better of the two", figures.ratio_of(best, runs["Auto"]), 0.95)


PARTS = {"simulator": compare_with_simulator, "gpu": emulate_a_gpu, "hiding": hide_a_delay, "crowd": gather_a_crowd,
         "evaluation": evaluate_beside}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--effort", type=float, default=1, help="multiplies steps and rounds")
    parser.add_argument("--workers", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8, 16])
    parser.add_argument("--crowd", type=int, default=128)
    arguments = parser.parse_args()
    table = figures.Table()
    with tempfile.TemporaryDirectory() as scratch:
        data = pathlib.Path(scratch) / "faces"
        training_run.draw_faces(arguments.programs, data, 35)
        for part in arguments.parts.split(","):
            PARTS[part](arguments, table, data, pathlib.Path(scratch))
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
