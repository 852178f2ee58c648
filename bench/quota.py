"""A process with a part of a core, by the CPU quota of a cgroup of its own."""

import contextlib
import os
import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")
PERIOD = 10_000  # microseconds: short beside a step


def _parent():
    """Where groups with a CPU quota are made, and whether by the first version's files; None: nowhere."""
    first = ROOT / "cpu"
    if os.access(first, os.W_OK) and (first / "cpu.cfs_quota_us").exists():
        return first, True
    controllers = ROOT / "cgroup.subtree_control"
    if os.access(ROOT, os.W_OK) and controllers.exists() and "cpu" in controllers.read_text(encoding="utf-8").split():
        return ROOT, False
    return None


def is_possible():
    return _parent() is not None


@contextlib.contextmanager
def cpu_quota(pid, cores):
    """The process, with all its threads, gets so many cores' time."""
    parent, first_version = _parent()
    group = parent / f"outrigger-bench-{pid}"
    group.mkdir()
    try:
        if first_version:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD), encoding="utf-8")
            (group / "cpu.cfs_quota_us").write_text(str(int(cores * PERIOD)), encoding="utf-8")
        else:
            (group / "cpu.max").write_text(f"{int(cores * PERIOD)} {PERIOD}", encoding="utf-8")
        (group / "cgroup.procs").write_text(str(pid), encoding="utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            (parent / "cgroup.procs").write_text(str(pid), encoding="utf-8")
        group.rmdir()
