#!/usr/bin/env python3
"""What lossy wires, staleness and ranks that seldom meet cost in accuracy: one network, five seeds of each.

On the ORL faces rank-1 of unseen photos (bench/accuracy/orl), on drawn faces the share of held-out photos that the
example manifests/examples/faces-local.yaml names rightly, of ten times as many as the example has: of its 600, two more
or less are the 0.3 points. All stems away on a worker. Wanted: bfloat16 and int8 wires within 0.3 points of float32's
mean; the standard error of the difference, by the seeds, stands behind it. Staleness 1 is shown beside them, and so are
two ranks of half the batch each that add gradients in every step or take the mean of their weights in every fourth.

Where all of a step is one micro-batch, server and worker take turns: two trainings at a time keep two cores at work, and
no figure depends on how many there are.

    bench/accuracy/wires.py [--sets orl,drawn] [--seeds 5] [--epochs N] [--judged]
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "orl"), str(HERE.parent)]
import figures  # noqa: E402
import splits  # noqa: E402
import training_run  # noqa: E402

APART = 0.3  # points
ROUNDING = 1e-9  # of sums of floats
CUT = "relu2"
AT_ONCE = 2  # trainings
HELD_OUT = 150  # drawn photos of each of 40 people


@dataclasses.dataclass(frozen=True)
class Variant:
    wire: str = "Float32"
    training: dict = dataclasses.field(default_factory=dict)
    ranks: int = 1
    judged: bool = False
    beside: str = "float32"  # the variant that it is compared with


VARIANTS = {
    "float32": Variant(),
    "bfloat16": Variant("BFloat16", judged=True),
    "int8": Variant("Int8", judged=True),
    "float32, staleness 1": Variant(training={"staleness": 1}),
    "two ranks": Variant(ranks=2),
    "two ranks, syncEverySteps 4": Variant(ranks=2, training={"syncEverySteps": 4}, beside="two ranks"),
}


@dataclasses.dataclass(frozen=True)
class FaceSet:
    job: pathlib.Path
    mount: str  # what the job calls its data
    figure: str


SETS = {
    "orl": FaceSet(HERE / "orl" / "job.yaml", "orl", "rank-1"),
    "drawn": FaceSet(HERE.parents[1] / "manifests" / "examples" / "faces-local.yaml", "faces", "accuracy"),
}


def resolved_job(arguments, what):
    told = subprocess.run([arguments.programs / "outrigger", "validate", SETS[what].job, "--resolved", "-o", "json"],
                          check=True, capture_output=True, text=True)
    job = json.loads(told.stdout)[0]["job"]
    job["spec"]["training"].pop("evaluate", None)  # the last weights count
    return job


def train(arguments, what, job, variant, seed, data, scratch):
    """One training; the folder of the run."""
    way = VARIANTS[variant]
    job = json.loads(json.dumps(job))
    spec = job["spec"]
    spec["split"] = {"cut": CUT, "sharePercent": 100, "wire": {"activations": way.wire, "gradients": way.wire}}
    spec["server"]["replicas"] = way.ranks
    spec["training"] |= {"seed": seed, "microBatchSize": spec["training"]["batchSize"] // way.ranks, **way.training}
    if arguments.epochs:
        spec["training"]["epochs"] = arguments.epochs
    run = scratch / f"{seed}-{list(VARIANTS).index(variant)}"
    run.mkdir(exist_ok=True)
    spec["output"] = {"path": str(run)}
    spec["checkpoint"] = {"everySteps": 1000000, "keep": 1}
    file = run / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    command = [arguments.programs / "outrigger", "run", file, "--workers", str(way.ranks), "--threads", "1",
               "--worker-threads", "1", "--mount", f"{SETS[what].mount}={data}"]
    with open(run / "log", "w", encoding="utf-8") as log:
        if subprocess.run(command, stdout=log, stderr=log, check=False).returncode != 0:
            raise training_run.Broken(f"{variant}, seed {seed}: training failed:\n"
                                      + (run / "log").read_text(encoding="utf-8")[-2000:])
    return run


def told_rightly(arguments, what, run, data):
    """The part of the photos that training never saw whose person is told: by the nearest photo of those it did see, or
    by the classifier."""
    weights = next(run.rglob("weights.safetensors"))
    command = [arguments.programs / "outrigger", "evaluate", weights, "-o", "json", "--data"]
    command += [data / "test", "--gallery", data / "train"] if what == "orl" else [data / "val"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return told["identification"]["rank1"] if what == "orl" else told["top1"]["accuracy"]


def drawn_faces(arguments, scratch):
    folder = scratch / "drawn"
    if not folder.exists():
        subprocess.run([arguments.programs / "outrigger", "generate", "faces", folder, "--validation", str(HELD_OUT)],
                       check=True, stdout=subprocess.DEVNULL)
    return folder


def variants_of(arguments):
    """Those that are judged with what they are compared with, or all."""
    judged = [way for way in VARIANTS.values() if way.judged]
    wanted = {way.beside for way in judged}
    return {name: way for name, way in VARIANTS.items() if not arguments.judged or way.judged or name in wanted}


def apart(rates, others):
    """Points between the means of two variants, and the standard error of that, by the seeds, which both have."""
    differences = [100 * (one - other) for one, other in zip(rates, others)]
    error = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0
    return statistics.fmean(differences), f"{statistics.fmean(differences):+.2f} +- {error:.2f} points"


def rates_of(arguments, what, variants, scratch):
    """Of every variant, seed by seed."""
    job = resolved_job(arguments, what)
    rates = {variant: [] for variant in variants}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as several:
        for seed in range(1, arguments.seeds + 1):
            data = splits.make_split(arguments.orl, seed, scratch) if what == "orl" else drawn_faces(arguments, scratch)
            told = several.map(lambda variant: told_rightly(
                arguments, what, train(arguments, what, job, variant, seed, data, scratch), data), variants)
            for variant, rate in zip(variants, told):
                rates[variant].append(rate)
            print(f"  {what}, seed {seed}: " + ", ".join(f"{name} {of[-1]:.2%}" for name, of in rates.items()),
                  flush=True)
    return rates


def compare(arguments, what, table, scratch):
    variants = variants_of(arguments)
    rates = rates_of(arguments, what, variants, scratch)
    for variant, way in variants.items():
        difference, told = apart(rates[variant], rates[way.beside])
        mean = statistics.fmean(rates[variant])
        row = f"{what}, {variant}: {SETS[what].figure}, mean of {arguments.seeds}, {mean:.2%}"
        if way.judged:
            table.judge(row, told, f"least {-APART}", difference >= -APART - ROUNDING)
        else:
            table.figure(row, f"{told} to {way.beside}")


def main():
    root = HERE.parents[1]
    data = pathlib.Path(os.environ.get("OUTRIGGER_DATA", root.parent / "shared" / "data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--orl", type=pathlib.Path, default=data / "orl", help="folder with s1 ... s40")
    parser.add_argument("--sets", default="orl,drawn")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, help="instead of the job's")
    parser.add_argument("--judged", action="store_true", help="without those that are only shown beside")
    arguments = parser.parse_args()
    table = figures.Table()
    for what in arguments.sets.split(","):
        if what == "orl" and not arguments.orl.is_dir():
            print(f"orl left out: the faces are not at {arguments.orl}")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            compare(arguments, what, table, pathlib.Path(scratch))
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
