"""Cases, what they ask of the cluster, and how long they wait for it."""

import json
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAMESPACE = "research"  # where jobs run
SYSTEM = "outrigger-system"  # where the operator runs
RELEASE = "outrigger"


class Failed(Exception):
    """What was expected and what was found."""


class Over(Failed):
    """What is waited for will not come any more."""


def run(*command, text_in=None, timeout=120):
    """The standard output of a command; Failed with its error output where it fails."""
    try:
        done = subprocess.run([str(part) for part in command], input=text_in, capture_output=True, text=True,
                              timeout=timeout, cwd=ROOT, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done within {timeout} s: {' '.join(map(str, command))}") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}"[:3000])
    return done.stdout


def kubectl(*arguments, namespace=NAMESPACE, **options):
    return run("kubectl", "--namespace", namespace, *arguments, **options)


def get(kind, name, namespace=NAMESPACE):
    """The object, or None where there is none of this name."""
    text = kubectl("get", kind, name, "--ignore-not-found", "-o", "json", namespace=namespace)
    return json.loads(text) if text.strip() else None


def get_all(kind, selector="", namespace=NAMESPACE):
    return json.loads(kubectl("get", kind, "-l", selector, "-o", "json", namespace=namespace))["items"]


def apply(thing, namespace=NAMESPACE):
    kubectl("apply", "--server-side", "-f", "-", namespace=namespace, text_in=json.dumps(thing))


def until(what, seconds, probe):
    """Asks again and again until `probe` returns something true, and returns it. A probe that fails is asked again, too, for an
    API server may be busy and a page not there yet; Over alone ends the waiting."""
    end = time.monotonic() + seconds
    while True:
        found, failure = None, ""
        try:
            found = probe()
        except Over:
            raise
        except Failed as error:
            failure = f"; {error}"
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"after {seconds} s still not: {what}{failure}")
        time.sleep(0.3)


def expect(truth, what):
    if not truth:
        raise Failed(what)


class Target:
    """A time that is promised. Other work on the machine shows in it, so a miss is only told, unless it took more than LATEST times
    as long."""

    LATEST = 3
    missed = 0

    def __init__(self):
        self.began = time.monotonic()

    def reached(self, what, seconds):
        took = time.monotonic() - self.began
        if took > seconds:
            Target.missed += 1
        print(f"        {what}: {took:.1f} s, at most {seconds} s: {'met' if took <= seconds else 'MISSED'}", flush=True)
        expect(took <= self.LATEST * seconds, f"{what}: {took:.1f} s, more than {self.LATEST} times its {seconds} s")


class Cases:
    """Runs cases in order; one whose `needs` did not pass is skipped, and after one that fails `tell` is called."""

    def __init__(self, tell):
        self.tell = tell
        self.passed, self.failed, self.skipped = [], [], []

    def run(self, name, needs, body):
        missing = [need for need in needs if need not in self.passed]
        if missing:
            print(f"skip    {name}: needs '{missing[0]}'", flush=True)
            self.skipped.append(name)
            return
        began = time.monotonic()
        try:
            body()
        except Exception as error:  # pylint: disable=broad-except  # whatever a case throws is its verdict
            print(f"FAILED  {name} ({time.monotonic() - began:.1f} s)\n        {type(error).__name__}: {error}", flush=True)
            self.failed.append(name)
            self.tell()
            return
        print(f"passed  {name} ({time.monotonic() - began:.1f} s)", flush=True)
        self.passed.append(name)

    def sum(self):
        return f"{len(self.passed)} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"
