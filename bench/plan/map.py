#!/usr/bin/env python3
"""Where a cut above 0 pays: one network, devices and links of many speeds, in virtual time.

The network is measured on this machine; then the real ledger and planner run it on described machines, once with
`cut: Auto` and once with all stems held on the server, where the planner may still keep input local. What is printed is
how many times the images a second the first makes; a dot where it is the same within 2 %.

    bench/plan/map.py [--model resnet18] [--side 112] [--workers 4] [--worker-cores 4]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import training_run  # noqa: E402

DEVICES = (2, 4, 8, 16, 32, 64)  # cores of this machine that the device is worth
MEGABITS = (30000, 10000, 3000, 1000, 300, 100)  # of each worker's link
STEPS = 120
SAME = 1.02


def measure(arguments, scratch):
    data = scratch / "faces"
    training_run.draw_faces(arguments.programs, data, arguments.side * 5 // 4, identities=4, photos=8)
    job = training_run.job({"name": arguments.model}, {"height": arguments.side, "width": arguments.side, "channels": 3},
                           {"steps": 10, "batchSize": 256, "microBatchSize": 16, "precision": "BFloat16"},
                           {"cut": "Auto", "wire": {"activations": "Int8", "gradients": "Int8"}}, data, scratch / "out")
    file = scratch / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    told = subprocess.run([arguments.programs / "outrigger", "plan", file, "--threads", "1", "-o", "json"], check=True,
                          capture_output=True, text=True)
    return json.loads(told.stdout)["profile"]


def rate(arguments, profile, device, megabits, scratch):
    """Images a second."""
    (scratch / "profile.json").write_text(json.dumps(profile), encoding="utf-8")
    cluster = {"profile": "profile.json", "steps": STEPS,
               "server": {"cores": 2, "device": device, "megabits": 100000},
               "workers": [{"name": "worker", "count": arguments.workers, "cores": arguments.worker_cores,
                            "megabits": megabits}]}
    file = scratch / "cluster.json"
    file.write_text(json.dumps(cluster), encoding="utf-8")
    told = subprocess.run([arguments.programs / "outrigger", "plan", "--simulate", file, "-o", "json"], check=True,
                          capture_output=True, text=True)
    return json.loads(told.stdout)["imagesPerSecond"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--side", type=int, default=112, help="of the images that it sees")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--worker-cores", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        profile = measure(arguments, scratch)
        print(f"{arguments.model} at {arguments.side}, bfloat16, int8 wires, {arguments.workers} workers of "
              f"{arguments.worker_cores} cores: images a second to those of cut Input")
        print(f"{'link, Mbit/s':>14}" + "".join(f"{device:>8}" for device in DEVICES) + "   cores' worth of device")
        for megabits in MEGABITS:
            cells = []
            for device in DEVICES:
                unsplit = rate(arguments, profile | {"fixedAway": 0}, device, megabits, scratch)
                gain = rate(arguments, profile, device, megabits, scratch) / unsplit
                cells.append(f"{gain:>7.2f}x" if gain >= SAME else f"{'·':>8}")
            print(f"{megabits:>14}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
