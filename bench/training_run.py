"""A job as real processes on cores of their own, for benchmarks that look at it from outside."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "build" / "release" / "bin"
PATIENCE = 600  # seconds that a run may take before it counts as hung
WIRE = "link-"   # threads that send, receive and unpack begin so; those of the server pack, too
MOST_WIRE = 0.05  # of the time, of the server's processor


class Broken(Exception):
    """A process did not do what the benchmark needs of it."""


def draw_faces(programs, folder, size, identities=16, photos=24):
    """A data set to train on: folder/train with a folder for each person."""
    subprocess.run([programs / "outrigger", "generate", "faces", folder, "--size", str(size), "--identities",
                    str(identities), "--train", str(photos), "--validation", "0"], check=True,
                   stdout=subprocess.DEVNULL)


def job(model, image, training, split, data, output):
    """A TrainingJob whose rates are worth measuring: augmentation, momentum, no checkpoint but the last."""
    return {
        "apiVersion": "outrigger.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": "bench"},
        "spec": {
            "model": model,
            "data": {
                "train": {"path": str(data / "train"), "format": "ImageFolder"},
                "image": image,
                "augment": [{"randomHorizontalFlip": {}}, {"randomResizedCrop": {"minScale": 0.7, "maxScale": 1.0}}],
            },
            "training": {
                "loss": {"softmaxCrossEntropy": {"labelSmoothing": 0.1}},
                "optimizer": {"sgd": {"momentum": 0.9, "weightDecay": 0.0005}},
                "schedule": {"constant": {"base": 0.01}},
                "seed": 1,
                **training,
            },
            "split": split,
            "server": {"replicas": 1, "gpus": 0},
            "workers": {"replicas": 0},
            "output": {"path": str(output)},
            "checkpoint": {"everySteps": 1000000, "keep": 1},
        },
    }


class Process:
    """A child on given cores, its output in a file, and the most memory it had."""

    def __init__(self, command, cpus, log):
        self.peak_kib = 0
        self.log = log
        pinned = ["taskset", "-c", ",".join(map(str, cpus))] if cpus else []
        with open(log, "w", encoding="utf-8") as output:
            self.child = subprocess.Popen([*pinned, *map(str, command)], stdout=output, stderr=output,
                                          stdin=subprocess.DEVNULL)

    def ended(self):
        """The exit status, or None while it runs; looks at its memory in passing."""
        try:
            with open(f"/proc/{self.child.pid}/status", encoding="utf-8") as status:
                self.peak_kib = max([self.peak_kib] + [int(line.split()[1]) for line in status if "VmHWM" in line])
        except OSError:
            pass
        return self.child.poll()

    def thread_seconds(self, prefix):
        """Processor time of the threads whose names begin so, those that have ended left out."""
        sum_ = 0
        for task in pathlib.Path(f"/proc/{self.child.pid}/task").iterdir():
            try:
                if (task / "comm").read_text(encoding="utf-8").startswith(prefix):
                    sum_ += int((task / "schedstat").read_text(encoding="utf-8").split()[0])
            except ProcessLookupError:
                continue
            except FileNotFoundError:
                if task.exists():  # a kernel that does not count
                    raise
        return sum_ / 1e9

    def said(self):
        return self.log.read_text(encoding="utf-8")

    def kill(self):
        self.child.kill()
        self.child.wait()


class TrainingRun:
    """A server and its workers. Leaving the `with` kills what still runs."""

    def __init__(self, job, folder, programs=PROGRAMS):
        self.programs = programs
        self.folder = pathlib.Path(folder)
        self.output = pathlib.Path(job["spec"]["output"]["path"]) / job["metadata"]["name"]
        shutil.rmtree(self.output, ignore_errors=True)  # a run refuses a former run's checkpoint
        self.job_file = self.folder / "job.json"
        self.job_file.write_text(json.dumps(job), encoding="utf-8")
        self.token_file = self.folder / "token"
        self.token_file.write_text("bench\n", encoding="utf-8")
        self.server = None
        self.workers = []
        self.metrics = {}  # lines of each type
        self.metrics_read = 0  # bytes

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that __exit__ runs
        return self

    def __exit__(self, *_):
        for process in [self.server, *self.workers]:
            if process is not None:
                process.kill()

    def start_server(self, threads, cpus=(), options=()):
        self.server = Process(
            [self.programs / "outrigger-gpu-server", "--job", self.job_file, "--token-file", self.token_file,
             "--listen", "127.0.0.1", "--port", "0", "--status-port", "0", "--threads", threads, *options],
            cpus, self.folder / "server.log")

    def start_worker(self, threads, cpus=(), options=()):
        self.wait_for(lambda: (self.output / "server.json").exists(), "the server's port")
        port = json.loads((self.output / "server.json").read_text(encoding="utf-8"))["port"]
        number = len(self.workers)
        self.workers.append(Process(
            [self.programs / "outrigger-worker", "--server", f"127.0.0.1:{port}", "--token-file", self.token_file,
             "--listen", "127.0.0.1", "--status-port", "0", "--index", number, "--threads", threads, *options],
            cpus, self.folder / f"worker-{number}.log"))

    def joined(self):
        """How often a worker has joined so far."""
        return self.server.said().count(" joined")

    def events(self, type_):
        """What metrics.jsonl tells of one type: steps, plans, …"""
        try:
            with open(self.output / "metrics.jsonl", "rb") as file:
                file.seek(self.metrics_read)  # who waits for an event asks often
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[:text.rfind(b"\n") + 1]
        self.metrics_read += len(whole)
        for line in map(json.loads, whole.splitlines()):
            self.metrics.setdefault(line["type"], []).append(line)
        return self.metrics.get(type_, [])

    def steps(self):
        return self.events("step")

    def wait_for(self, condition, what):
        give_up = time.monotonic() + PATIENCE
        while not condition():
            if self.look() is not None:
                raise Broken(f"the server ended while waiting for {what}:\n{self.server.said()[-3000:]}")
            if time.monotonic() > give_up:
                raise Broken(f"waited {PATIENCE} s for {what}:\n{self.server.said()[-3000:]}")
            time.sleep(0.02)

    def look(self):
        """The server's exit status, or None while it runs."""
        for worker in self.workers:
            worker.ended()
        return self.server.ended()

    def finish(self, wanted=0):
        """Waits for the server to end with this status."""
        give_up = time.monotonic() + PATIENCE
        while self.look() is None:
            if time.monotonic() > give_up:
                raise Broken(f"the server does not end:\n{self.server.said()[-3000:]}")
            time.sleep(0.02)
        if self.look() != wanted:
            raise Broken(f"the server ended with status {self.look()}:\n{self.server.said()[-3000:]}")

    def stop(self):
        """Asks the server to stop; it exits with 20 after a checkpoint."""
        self.server.child.send_signal(signal.SIGTERM)
        self.finish(wanted=20)


def cores():
    """How many cores we may use."""
    return len(os.sched_getaffinity(0))


def two_cores():
    """The cores to pin to, or None on a machine that lets us use one only."""
    return sorted(os.sched_getaffinity(0))[:2] if cores() >= 2 else None
