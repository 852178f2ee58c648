#!/usr/bin/env python3
"""Where a cut above 0 pays: one network, devices and links of many speeds, in virtual time.

The network is measured on this machine; then the real ledger and planner run it on described machines, once with
`cut: Auto` and once with all stems held on the server, where the planner may still keep input local. What is printed is
how many times the images a second the first makes; a dot where it is the same within 2 %. With `--plot` the same is
drawn, too.

    bench/plan/map.py [--model resnet18] [--side 112] [--workers 4] [--worker-cores 4] [--plot map.svg]
"""

import argparse
import html
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


def drawn(title, gains):
    """The map as SVG: a field for each device and link, the darker the more a cut above 0 brings."""
    field, left, top = (84, 44), 110, 60
    width, height = left + field[0] * len(DEVICES) + 20, top + field[1] * len(MEGABITS) + 56
    highest = max(max(gains.values()), SAME)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
             f'font-size="13" text-anchor="middle">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{width / 2}" y="24">{html.escape(title)}</text>']
    for row, megabits in enumerate(MEGABITS):
        y = top + row * field[1]
        parts.append(f'<text x="{left - 12}" y="{y + 27}" text-anchor="end">{megabits} Mbit/s</text>')
        for column, device in enumerate(DEVICES):
            gain = gains[megabits, device]
            depth = (gain - 1) / (highest - 1) if gain >= SAME else 0
            shade = f"hsl(210, 70%, {97 - 52 * depth:.0f}%)"
            x = left + column * field[0]
            parts.append(f'<rect x="{x}" y="{y}" width="{field[0]}" height="{field[1]}" fill="{shade}" stroke="white"/>')
            ink = "white" if depth > 0.6 else "black"
            text = f"{gain:.2f}x" if gain >= SAME else "·"
            parts.append(f'<text x="{x + field[0] / 2}" y="{y + 27}" fill="{ink}">{text}</text>')
    y = top + field[1] * len(MEGABITS) + 20
    for column, device in enumerate(DEVICES):
        parts.append(f'<text x="{left + (column + 0.5) * field[0]}" y="{y}">{device}</text>')
    parts.append(f'<text x="{left + field[0] * len(DEVICES) / 2}" y="{y + 24}">cores\' worth of device</text></svg>')
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=training_run.PROGRAMS, help="folder of the programs")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--side", type=int, default=112, help="of the images that it sees")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--worker-cores", type=int, default=4)
    parser.add_argument("--plot", type=pathlib.Path, help="file for the same as a drawing, in SVG")
    arguments = parser.parse_args()
    title = (f"{arguments.model} at {arguments.side}, bfloat16, int8 wires, {arguments.workers} workers of "
             f"{arguments.worker_cores} cores: images a second to those of cut Input")
    gains = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        profile = measure(arguments, scratch)
        print(title)
        print(f"{'link, Mbit/s':>14}" + "".join(f"{device:>8}" for device in DEVICES) + "   cores' worth of device")
        for megabits in MEGABITS:
            cells = []
            for device in DEVICES:
                unsplit = rate(arguments, profile | {"fixedAway": 0}, device, megabits, scratch)
                gain = gains[megabits, device] = rate(arguments, profile, device, megabits, scratch) / unsplit
                cells.append(f"{gain:>7.2f}x" if gain >= SAME else f"{'·':>8}")
            print(f"{megabits:>14}" + "".join(cells), flush=True)
    if arguments.plot:
        arguments.plot.write_text(drawn(title, gains), encoding="utf-8")


if __name__ == "__main__":
    main()
