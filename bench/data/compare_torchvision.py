#!/usr/bin/env python3
"""JPEG to training tensor against torchvision, and a two-core loader against PyTorch's DataLoader.

The two sides take turns, several times; what counts is the ratio of the medians. Both decode, crop at random with
antialiasing, flip, and make a normalised float32 tensor.

    bench/data/compare_torchvision.py build/release/bench/data/data_bench ../shared/data/photos
"""
import argparse
import glob
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import figures  # noqa: E402

BATCH = 64


def make_transform(size):
    return v2.Compose([
        v2.RandomResizedCrop(size, antialias=True),
        v2.RandomHorizontalFlip(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ])


class Ours:
    """data_bench as a partner that runs one pass when it is asked to."""

    def __init__(self, program, folder, size, threads, copies, cpus, more=()):
        command = ["taskset", "-c", cpus, program, "--folder", folder, "--size", str(size), "--threads", str(threads),
                   "--copies", str(copies), *more]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.terminate()  # the end of its input would not do: DataLoader's forked workers hold that pipe too
        self.process.wait()


class Decoding:
    def __init__(self, paths, size):
        self.encoded = [read_file(path) for path in paths]
        self.transform = make_transform(size)

    def run(self):
        start = time.perf_counter()
        for data in self.encoded:
            self.transform(decode_image(data, ImageReadMode.RGB))
        return len(self.encoded) / (time.perf_counter() - start)


class Photos(Dataset):
    def __init__(self, paths, size, copies):
        self.paths = paths * copies
        self.transform = make_transform(size)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(decode_image(read_file(self.paths[index]), ImageReadMode.RGB)), 0


class Loading:
    def __init__(self, paths, size, copies, workers):
        self.loader = DataLoader(Photos(paths, size, copies), BATCH, num_workers=workers, persistent_workers=workers > 0)

    def run(self):
        start = time.perf_counter()
        images = sum(len(batch) for batch, _ in self.loader)
        return images / (time.perf_counter() - start)


def take_turns(sides, rounds):
    """The rates of each side; a first round warms up and does not count."""
    rates = {name: [] for name in sides}
    for turn in range(rounds + 1):
        for name, side in sides.items():
            rate = side.run()
            if turn > 0:
                rates[name].append(rate)
    return rates


def report(table, what, ours, theirs, target):
    table.ratio(what, figures.ratio_of(ours, theirs), target)
    table.figure("    ours", f"{statistics.median(ours):.0f} images/s")
    table.figure("    theirs", f"{statistics.median(theirs):.0f} images/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[112, 224])
    parser.add_argument("--part", choices=["decode", "loader", "all"], default="all")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # three workers on two cores compete too
    paths = sorted(glob.glob(os.path.join(arguments.folder, "*.jpg")))
    torch.set_num_threads(1)
    cpus = sorted(os.sched_getaffinity(0))
    table = figures.Table()
    for size in arguments.sizes if arguments.part != "loader" else []:
        os.sched_setaffinity(0, cpus[:1])
        ours = Ours(arguments.program, arguments.folder, size, 1, 1, str(cpus[0]))
        rates = take_turns({"ours": ours, "torchvision": Decoding(paths, size)}, arguments.rounds)
        ours.close()
        report(table, f"JPEG to tensor of {size}x{size}, one core, against torchvision", rates["ours"],
               rates["torchvision"], 1.8)
    if len(cpus) >= 2 and arguments.part != "decode":
        os.sched_setaffinity(0, cpus[:2])
        size, copies = arguments.sizes[-1], 2
        ours = Ours(arguments.program, arguments.folder, size, 2, copies, f"{cpus[0]},{cpus[1]}", ["--read-files"])
        sides = {"ours": ours}
        for workers in (1, 2, 3):
            sides[f"{workers} workers"] = Loading(paths, size, copies, workers)
        rates = take_turns(sides, arguments.rounds)
        ours.close()
        best = max((name for name in rates if name != "ours"), key=lambda name: statistics.median(rates[name]))
        report(table, f"loader of {size}x{size}, two cores, against DataLoader with {best}", rates["ours"], rates[best],
               2.5)
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
