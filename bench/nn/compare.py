#!/usr/bin/env python3
"""The engine beside PyTorch: the same steps on the same cores, in turn, median of the rounds.

Prints images per second of both, for every type and memory format that PyTorch has to offer, and the ratio of the
engine's best to PyTorch's best. On a shared machine --clock cpu counts processor time instead of the
clock on the wall (use it with one thread; PyTorch's threads spin).
"""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torchvision

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]
import figures  # noqa: E402
import peer_models  # noqa: E402

TARGETS = {"stem": 1.3, "lenet5": 1.3, "resnet18": 1.15, "mobilefacenet": 1.15}
BFLOAT16_TARGET = 1.5
BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16"}
# A form of PyTorch's this much slower than its best in the first round, as bfloat16 is where processors lack it, competes no more.
HOPELESS = 5


def resnet18_stem():
    net = torchvision.models.resnet18()
    return nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1)


CASES = {  # model, side, channels, classes, batch, threads (0: as asked), what
    "stem": ("resnet18", 112, 3, 100, 32, 1, "layer1"),
    "lenet5": ("lenet5", 28, 1, 10, 64, 0, "step"),
    "resnet18": ("resnet18", 112, 3, 100, 32, 0, "step"),
    "mobilefacenet": ("mobilefacenet", 112, 3, 100, 32, 0, "step"),
}


def processor_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


class Engine:
    """The C++ program, which runs so many steps whenever it is asked to."""

    def __init__(self, binary, case, precision, threads):
        model, side, channels, classes, batch, own_threads, what = CASES[case]
        self.name = f"outrigger {precision}"
        self.batch = batch
        command = [binary, model, side, channels, classes, batch, own_threads or threads, precision, what]
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.run(1, "wall")

    def run(self, steps, clock):
        before = self.processor()
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        seconds = float(self.process.stdout.readline())
        return self.processor() - before if clock == "cpu" else seconds

    def processor(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Torch:
    """The same step as a PyTorch loop would do it."""

    def __init__(self, case, kind, channels_last, compiled, threads):
        model, side, channels, classes, self.batch, own_threads, what = CASES[case]
        self.name = f"pytorch {kind}{' channels-last' if channels_last else ''}{' compiled' if compiled else ''}"
        self.threads = own_threads or threads
        torch.set_num_threads(self.threads)
        net = peer_models.make(model, classes, side, channels) if what == "step" else resnet18_stem()
        self.whole = what == "step"
        self.kind = kind
        pixels = torch.randint(0, 256, (self.batch, channels, side, side), dtype=torch.uint8)
        self.pixels = pixels.to(memory_format=torch.channels_last)
        self.layout = torch.channels_last if channels_last else torch.contiguous_format
        self.type = torch.bfloat16 if kind == "bfloat16" else torch.float32
        net = net.to(memory_format=self.layout).to(self.type)
        self.optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, foreach=True)
        self.labels = torch.randint(0, classes, (self.batch,))
        self.net = torch.compile(net) if compiled else net
        self.gradient = None
        for _ in range(2):
            self.step()

    def step(self):
        x = self.pixels.to(self.type).div_(255).sub_(0.5).div_(0.25).contiguous(memory_format=self.layout)
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.kind == "autocast"):
            y = self.net(x)
        if self.whole:
            nn.functional.cross_entropy(y.float(), self.labels).backward()
            self.optimizer.step()
        else:
            if self.gradient is None:
                self.gradient = torch.randn_like(y) * 1e-3
            y.backward(self.gradient)

    def run(self, steps, clock):
        torch.set_num_threads(self.threads)
        begin, before = time.perf_counter(), processor_seconds(resource.RUSAGE_SELF)
        for _ in range(steps):
            self.step()
        if clock == "cpu":
            return processor_seconds(resource.RUSAGE_SELF) - before
        return time.perf_counter() - begin

    def close(self):
        pass


def torch_contenders(case, threads, with_compile):
    contenders = []
    for kind in ("float32", "bfloat16", "autocast"):
        for channels_last in (False, True):
            for compiled in (False, True) if with_compile else (False,):
                try:
                    contenders.append(Torch(case, kind, channels_last, compiled, threads))
                except Exception as error:  # an absent compiler, say: then that form does not compete
                    print(f"  {kind} channels_last={channels_last} compiled={compiled}: {str(error).splitlines()[0]}",
                          file=sys.stderr)
    return contenders


def measure(case, arguments):
    engines = [Engine(arguments.binary, case, p, arguments.threads) for p in ("float32", "bfloat16")]
    contenders = engines + torch_contenders(case, arguments.threads, arguments.compile)
    steps = max(1, {"lenet5": 50}.get(case, 2) * arguments.steps)
    rates = {c.name: [] for c in contenders}
    for _ in range(arguments.rounds):
        for contender in contenders:
            seconds = contender.run(steps, arguments.clock)
            rates[contender.name].append(steps * contender.batch / max(seconds, 1e-9))
        best = max(rates[c.name][0] for c in contenders if c not in engines)
        contenders = [c for c in contenders if c in engines or rates[c.name][0] * HOPELESS >= best]
    for contender in contenders:
        contender.close()
    return rates


def has_bfloat16():
    """Whether this machine's processors have instructions for it."""
    with open("/proc/cpuinfo") as facts:
        return any(BFLOAT16_FLAGS & set(line.split()) for line in facts if line.startswith("flags"))


def report(case, rates, table):
    model, side, _, _, batch, _, what = CASES[case]
    middle = {name: statistics.median(values) for name, values in rates.items()}
    ours = max((name for name in rates if name.startswith("outrigger")), key=middle.get)
    theirs = max((name for name in rates if name.startswith("pytorch")), key=middle.get)
    step = "training step" if what == "step" else f"forward + backward up to {what}"
    ratio = figures.ratio_of(rates[ours], rates[theirs])
    table.ratio(f"{model} at {side}, {step}, batch of {batch}, against PyTorch", ratio, TARGETS[case])
    if case != "lenet5" and has_bfloat16():
        table.ratio("  its bfloat16 against its float32",
                    figures.ratio_of(rates["outrigger bfloat16"], rates["outrigger float32"]), BFLOAT16_TARGET)
    elif case != "lenet5":
        table.figure("  its bfloat16 against its float32", "not judged: no bfloat16 here")
    for name, rate in sorted(middle.items(), key=lambda item: -item[1]):
        table.figure(f"    {name}", f"{rate:.1f} images/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, help="outrigger-bench-nn of a release build")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1, help="multiplies the steps of a round")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--compile", action="store_true", help="also what torch.compile makes of it")
    arguments = parser.parse_args()
    print(f"PyTorch {torch.__version__}, {arguments.threads} threads, median of {arguments.rounds} rounds in turn, "
          f"{arguments.clock} clock")
    table = figures.Table()
    for case in arguments.cases.split(","):
        report(case, measure(case, arguments), table)
    return table.status()


if __name__ == "__main__":
    sys.exit(main())
