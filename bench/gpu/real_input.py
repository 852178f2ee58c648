#!/usr/bin/env python3
"""JPEG files into training on a GPU: the server with its own worker and with workers on the same host, beside the rate that
no input slows down (outrigger-bench-gpu), and beside PyTorch with a DataLoader, end to end.

For each network: how many images a second with how many cores for input, how long the device stood still, and the fewest
cores that reach 0.97 of the synthetic rate. Photos are drawn (`outrigger generate faces`) unless a folder with train/ in it,
a folder a class, is given. Exits with 24 where there is no GPU. --cpu trains on the CPU instead, to try the benchmark itself.
"""
import argparse
import itertools
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
import training_run  # noqa: E402

CASES = {  # model: side, side of the photos, batch, group
    "resnet50": (224, 500, 256, 64),
    "iresnet50": (112, 250, 512, 128),
    "mobilefacenet": (112, 250, 512, 128),
}
WARM = 10  # steps until plans are timed and passes recorded
FOUND = 200  # steps by which workers have joined and the planner should have found its plan
FOUND_ON_CPUS = 40


def classes_of(data):
    return sum(1 for entry in (data / "train").iterdir() if entry.is_dir())


def synthetic(options, model, classes):
    side, _, batch, group = sizes(options, model)
    precision, device = ("float32", "cpu") if options.cpu else ("bfloat16", "cuda")
    command = [options.programs / "outrigger-bench-gpu", model, side, classes, "linear", batch, group,
               max(group, min(256, batch)), precision, device]
    done = subprocess.run([str(c) for c in command], input=f"{options.steps}\n" * options.rounds, capture_output=True,
                          text=True)
    if done.returncode:
        print(f"bench/gpu: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(done.returncode)
    return [options.steps * batch / float(line.split()[0]) for line in done.stdout.splitlines()[1:]]


def sizes(options, model):
    side, photo, batch, group = CASES[model]
    return (side, photo, 16, 8) if options.cpu else (side, photo, batch, group)


def train(options, model, data, folder, threads, workers, cut="Input"):
    """Images a second over the steps behind the first, the share in which the device stood still, and the plan at the end."""
    side, _, batch, group = sizes(options, model)
    found = FOUND_ON_CPUS if options.cpu else FOUND
    first = WARM if cut == "Input" else found
    steps = first + options.steps
    job = training_run.job({"name": model}, {"height": side, "width": side, "channels": 3},
                           {"steps": steps, "batchSize": batch, "microBatchSize": group,
                            "precision": "Float32" if options.cpu else "BFloat16"},
                           {"cut": cut}, data, folder / "out")
    with training_run.TrainingRun(job, folder, options.programs) as run:
        run.start_server(threads, options=["--device", "cpu" if options.cpu else "cuda"])
        for _ in range(workers):
            run.start_worker(max(1, threads // workers))
        run.finish()
        told, plan = run.steps()[first:], run.events("plan")[-1]
    seconds = sum(step["seconds"] for step in told)
    stalled = sum(sum(step["stall"].values()) for step in told)
    return batch * len(told) / seconds, stalled / seconds, plan


class Loader:
    """PyTorch's way of the same: DataLoader, automatic mixed precision, channels last, the optimizer fused."""

    def __init__(self, options, model, data, workers):
        import torch
        import peer_models
        from torchvision import datasets
        from torchvision.transforms import v2
        self.torch = torch
        side, _, self.batch, _ = sizes(options, model)
        self.device = "cpu" if options.cpu else "cuda"
        transform = v2.Compose([v2.RandomResizedCrop(side, scale=(0.7, 1), antialias=True), v2.RandomHorizontalFlip(),
                                v2.PILToTensor()])
        torch.backends.cudnn.benchmark = True
        dataset = datasets.ImageFolder(str(data / "train"), transform)
        # One long epoch: at the end of each a DataLoader drains its processes, and the photos here make two batches.
        # Neither what is fetched ahead before the clock runs nor the lack of more at the end counts.
        ahead = 2 * workers
        self.warm = WARM + ahead
        batches = self.warm + options.steps + ahead
        repeated = torch.utils.data.ConcatDataset([dataset] * (batches * self.batch // len(dataset) + 1))
        self.batches = iter(torch.utils.data.DataLoader(repeated, self.batch, shuffle=True, num_workers=workers,
                                                        drop_last=True, pin_memory=not options.cpu))
        self.net = peer_models.make(model, len(dataset.classes), side).to(self.device).train()
        self.net = self.net.to(memory_format=torch.channels_last)
        weights = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(weights, lr=0.01, momentum=0.9, weight_decay=5e-4, fused=not options.cpu)
        mixed = not options.cpu
        self.autocast = lambda: torch.autocast(self.device, dtype=torch.bfloat16, enabled=mixed)

    def synthetic(self, steps):
        """Images a second where every step has the same batch and nobody loads any more. Its last run."""
        batch = next(self.batches)
        self.batches = itertools.repeat(batch)  # which ends the loading processes
        return self.run(steps)

    def run(self, steps):
        """Images a second."""
        torch = self.torch
        begin = 0
        for step in range(self.warm + steps):
            if step == self.warm:
                self.wait()
                begin = time.perf_counter()
            pixels, labels = (x.to(self.device, non_blocking=True) for x in next(self.batches))
            x = ((pixels.float() / 255) - 0.5) / 0.5
            with self.autocast():
                loss = torch.nn.functional.cross_entropy(self.net(x.contiguous(memory_format=torch.channels_last)), labels)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        self.wait()
        return steps * self.batch / (time.perf_counter() - begin)

    def wait(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()


def best_of_pytorch(options, model, data, cores):
    """Images a second end to end, and where its loader has nothing to do."""
    best = 0
    for workers in dict.fromkeys((max(1, cores // 2), cores)):
        loader = Loader(options, model, data, workers)
        rate = loader.run(options.steps)
        print(f"{model}: PyTorch with {workers} loading processes: {rate:.0f} images/s", flush=True)
        best = max(best, rate)
    return best, loader.synthetic(options.steps)


def compare(options, model, table, data, folder):
    rates = synthetic(options, model, classes_of(data))
    full = statistics.median(rates)
    table.figure(f"{model}: synthetic input, images/s", f"{full:.0f}")
    cores = training_run.cores()
    alone = own_worker(options, model, table, data, folder, full, cores)
    with_workers(options, model, table, data, folder, full, cores)
    if options.no_pytorch:
        return
    theirs, unfed = best_of_pytorch(options, model, data, cores)
    bound = theirs < 0.97 * unfed
    what = f"{model}: files, of PyTorch's {theirs:.0f} images/s ({unfed:.0f} without its loader)"
    table.ratio(what + (", input-bound" if bound else ""), alone / theirs, 1.5 if bound else 1.0)


def own_worker(options, model, table, data, folder, full, cores):
    fewest, best = None, (0, 1)
    for threads in options.threads or [n for n in (1, 2, 4, 8, 16, 32, 64) if n < cores] + [cores]:
        rate, stalled, _ = train(options, model, data, folder, threads, 0)
        table.figure(f"{model}: files, own worker on {threads} cores: {rate:.0f} images/s, stood still", f"{stalled:.1%}")
        best = max(best, (rate, stalled))
        if fewest is None and rate >= 0.97 * full:
            fewest = threads
    table.figure(f"{model}: fewest cores that reach 0.97 of it", str(fewest or f"more than {cores}"))
    table.ratio(f"{model}: files, own worker, of the synthetic rate", best[0] / full, 0.97)
    table.judge(f"{model}: files, the device stood still", f"{best[1]:.1%}", "most 2 %", best[1] <= 0.02)
    return best[0]


def with_workers(options, model, table, data, folder, full, cores):
    """Half of the cores for the server and its own worker, half for workers."""
    half = max(1, cores // 2)
    for cut in ("Input", "Auto"):
        rate, stalled, plan = train(options, model, data, folder, half, options.workers, cut)
        what = f"{model}: files, own worker on {half} cores and {options.workers} workers, cut {cut}"
        table.figure(f"{what}: {rate:.0f} images/s, stood still", f"{stalled:.1%}")
    print(f"{model}: found: {plan['reason']}", flush=True)
    table.ratio(f"{model}: files, that with cut Auto, of the synthetic rate", rate / full, 0.97)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="the folder of the programs")
    parser.add_argument("--library-path", help="LD_LIBRARY_PATH of them alone; PyTorch has its own libraries")
    parser.add_argument("--data", type=pathlib.Path, help="a folder with train/ in it, instead of drawn photos")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--threads", type=int, nargs="*", help="of the own worker, in turn; all powers of two by default")
    parser.add_argument("--models", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--no-pytorch", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if options.library_path:  # for the programs; this process has its libraries already
        os.environ["LD_LIBRARY_PATH"] = options.library_path
    table = figures.Table()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for model in options.models:
            data = options.data
            if data is None:
                photo = CASES[model][1]
                data = folder / f"photos-{photo}"
                if not data.exists():
                    training_run.draw_faces(options.programs, data, photo, identities=16, photos=64)
            compare(options, model, table, data, folder)
    sys.exit(table.status())


if __name__ == "__main__":
    main()
