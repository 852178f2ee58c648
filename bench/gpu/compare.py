#!/usr/bin/env python3
"""The training step on a GPU beside PyTorch's: the same networks, batches and groups, in turn, median of the rounds.

First what groups of batch norm of 32 to 256 samples cost us, which sets defaults; then each network against PyTorch with
automatic mixed precision and channels last: as it is written (eager), with the step as a CUDA graph, and compiled, with
the same groups (micro-batches whose gradients it adds up) and with the whole batch as one group, which is its best. Input
is uint8 pixels in host memory on both sides, copied in every step. Exits with 24 where there is no GPU.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tools")]
import figures  # noqa: E402

NO_DEVICE = 24
CASES = {  # model: side, classes, head, batch, group
    "resnet50": (224, 1000, "linear", 256, 64),
    "iresnet50": (112, 10000, "arcface", 512, 128),
    "mobilefacenet": (112, 10000, "arcface", 512, 128),
}
WAYS = ("eager", "graph", "compiled")
AT_ONCE = 256
SWEPT = ("resnet50", "iresnet50")
GROUPS = (32, 64, 128, 256)


class Ours:
    """The C++ program, which runs so many steps whenever it is asked to."""

    def __init__(self, options, model, group, at_once=AT_ONCE):
        side, classes, head, self.batch, _ = CASES[model]
        self.name = f"outrigger, groups of {group}, {at_once} at once"
        command = [options.binary, model, side, classes, head, self.batch, group, at_once, options.precision, "cuda",
                   options.plans]
        environment = dict(os.environ)
        if options.library_path:
            environment["LD_LIBRARY_PATH"] = options.library_path
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        first = self.process.stdout.readline().split()
        if len(first) != 2 or first[0] != "ready":
            sys.exit(self.process.wait() or 1)
        self.memory = int(first[1])

    def run(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            sys.exit(f"{self.name} ended")
        return float(answer[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Torch:
    """PyTorch's step: eager, graph or compiled."""

    def __init__(self, options, model, group, way):
        import torch
        import peer_models
        self.torch, self.peer_models, self.way = torch, peer_models, way
        side, classes, self.head, self.batch, _ = CASES[model]
        self.group = group
        self.name = f"PyTorch {way}, groups of {group}"
        self.type = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(options.precision)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.manual_seed(1)
        features = 0 if self.head == "arcface" else classes
        self.net = peer_models.make(model, features, side).cuda().to(memory_format=torch.channels_last).train()
        weights = [p for p in self.net.parameters() if p.requires_grad]
        self.centres = None
        if self.head == "arcface":
            self.centres = torch.nn.Parameter(torch.randn(classes, 512, device="cuda") * 0.01)
            weights.append(self.centres)
        self.optimizer = torch.optim.SGD(weights, lr=1e-3, momentum=0.9, weight_decay=5e-4, fused=True)
        if way != "eager":  # a recording must not own what the next one adds to
            for weight in weights:
                weight.grad = torch.zeros_like(weight)
        self.scaler = torch.amp.GradScaler("cuda", enabled=self.type is torch.float16)
        self.pixels = torch.randint(0, 256, (self.batch, side, side, 3), dtype=torch.uint8).pin_memory()
        self.labels = torch.randint(0, classes, (self.batch,)).pin_memory()
        self.on_device = torch.empty_like(self.pixels, device="cuda"), torch.empty_like(self.labels, device="cuda")
        imagenet = model.startswith("resnet")
        as_shape = lambda values: torch.tensor(values, device="cuda").view(1, -1, 1, 1)  # noqa: E731
        self.mean = as_shape((0.485, 0.456, 0.406) if imagenet else (0.5,) * 3)
        self.deviation = as_shape((0.229, 0.224, 0.225) if imagenet else (0.5,) * 3)
        self.loss_of = torch.compile(self.loss, mode="reduce-overhead") if way == "compiled" else self.loss
        self.graph = None
        for _ in range(3):
            self.step()
        if way == "graph":
            self.capture()
        self.run(2)
        self.memory = torch.cuda.max_memory_reserved()

    def loss(self, pixels, labels):
        torch = self.torch
        x = (pixels.permute(0, 3, 1, 2).float() / 255 - self.mean) / self.deviation
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=self.type or torch.bfloat16, enabled=self.type is not None):
            out = self.net(x)
        if self.head == "arcface":
            out = self.arcface(out.float(), labels)
        return torch.nn.functional.cross_entropy(out.float(), labels, reduction="sum") / self.batch

    def arcface(self, embeddings, labels):
        torch = self.torch
        normal = torch.nn.functional.normalize
        with torch.autocast("cuda", dtype=self.type or torch.bfloat16, enabled=self.type is not None):
            cosine = torch.nn.functional.linear(normal(embeddings), normal(self.centres)).float()
        own = cosine.gather(1, labels[:, None])
        moved = own * 0.8775826 - (1 - own * own).clamp(min=1e-7).sqrt() * 0.4794255
        return 64 * cosine.scatter(1, labels[:, None], moved)

    def step(self):
        for target, source in zip(self.on_device, (self.pixels, self.labels)):
            target.copy_(source, non_blocking=True)
        if self.graph is not None:
            self.graph.replay()
            return
        self.work()

    def work(self):
        self.optimizer.zero_grad(set_to_none=self.way == "eager")
        for first in range(0, self.batch, self.group):
            pixels, labels = (x[first:first + self.group] for x in self.on_device)
            if self.way == "compiled":
                self.torch.compiler.cudagraph_mark_step_begin()
            self.scaler.scale(self.loss_of(pixels, labels)).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def capture(self):
        torch = self.torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.work()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.work()
        self.graph = graph

    def run(self, steps):
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.torch.cuda.synchronize()
        return time.perf_counter() - begin

    def close(self):
        self.net = self.graph = self.optimizer = self.loss_of = self.on_device = None
        self.torch.cuda.empty_cache()


def rates(peers, steps, rounds):
    """Images a second of each peer in each round, one peer after the other in every round."""
    measured = [[] for _ in peers]
    for _ in range(rounds):
        for peer, of in zip(peers, measured):
            of.append(steps * peer.batch / peer.run(steps))
    return measured


def sweep(options, table, told):
    for model in SWEPT:
        peers = [Ours(options, model, group) for group in GROUPS]
        peers.append(Ours(options, model, GROUPS[0], GROUPS[0]))
        measured = rates(peers, options.steps, options.rounds)
        for peer, of in zip(peers, measured):
            share = figures.ratio_of(of, measured[GROUPS.index(AT_ONCE)])
            table.figure(f"{model}: {peer.name}: {statistics.median(of):.0f} images/s, of one group", f"{share:.3f}x")
            told.append({"model": model, "peer": peer.name, "imagesPerSecond": of})
            peer.close()


def torch_peers(options, model, group):
    batch = CASES[model][3]
    for size in dict.fromkeys((group, batch)):
        for way in options.ways:
            try:
                yield Torch(options, model, size, way)
            except Exception as error:  # a way that this PyTorch has not; the others still count
                print(f"{model}: PyTorch {way}, groups of {size}: left out: {error}", flush=True)


def compare(options, model, table, told):
    group = CASES[model][4]
    ours = Ours(options, model, group)
    best = {}
    for peer in torch_peers(options, model, group):
        mine, theirs = rates([ours, peer], options.steps, options.rounds)
        ratio = figures.ratio_of(mine, theirs)
        told.append({"model": model, "peer": peer.name, "imagesPerSecond": theirs, "ours": mine,
                     "memory": peer.memory, "ourMemory": ours.memory})
        what = f"{model}: {statistics.median(mine):.0f} images/s, {peer.name} {statistics.median(theirs):.0f}"
        if peer.way == "graph":
            table.figure(what, f"{ratio:.2f}x")
        else:
            table.ratio(what, ratio, 1.0)
        best[peer.way] = min(best.get(peer.way, peer.memory), peer.memory)
        peer.close()
    if best:
        least = min(best.values())
        table.judge(f"{model}: peak memory, PyTorch's least {least >> 20} MiB", f"{ours.memory >> 20} MiB", "most as much",
                    ours.memory <= least)
    ours.close()


def require_gpu(options):
    """Ends where the program finds no GPU, with its words and code."""
    environment = dict(os.environ)
    if options.library_path:
        environment["LD_LIBRARY_PATH"] = options.library_path
    command = [options.binary, "lenet5", "28", "10", "linear", "8", "4", "8", "float32", "cuda"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"bench/gpu: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(done.returncode)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="outrigger-bench-gpu of a build with CUDA")
    parser.add_argument("--library-path", help="LD_LIBRARY_PATH of it alone; PyTorch has its own libraries")
    parser.add_argument("--precision", default="bfloat16", choices=("tf32", "bfloat16", "float16"))
    parser.add_argument("--plans", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / f"outrigger-gpu-plans-{os.getuid()}.txt",
                        help="where the fastest plans are kept, as in a run's folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="of each round")
    parser.add_argument("--models", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS, help="PyTorch's")
    parser.add_argument("--no-sweep", action="store_true", help="not what groups cost")
    parser.add_argument("--json", type=pathlib.Path, help="where every round goes too")
    options = parser.parse_args()
    require_gpu(options)
    table, told = figures.Table(), []
    if not options.no_sweep:
        sweep(options, table, told)
    try:
        import torch
        has_torch = torch.cuda.is_available()
    except ImportError:
        has_torch = False
    if has_torch:
        for model in options.models:
            compare(options, model, table, told)
    else:
        print("bench/gpu: no PyTorch with CUDA in this Python: the comparison with it is left out")
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))
    sys.exit(table.status())


if __name__ == "__main__":
    main()
