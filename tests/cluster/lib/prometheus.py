"""Debian's Prometheus on this machine, scraping what the chart's ServiceMonitor and PodMonitor name, with the chart's rules."""

import http.client
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request

from lib.harness import Failed, RELEASE, ROOT, SYSTEM, run

PORT = 19090
FOLDER = pathlib.Path(tempfile.gettempdir()) / "outrigger-prometheus"
_process = None
_stopped = threading.Event()

# Debian's build finds no pods by itself, so files name them; a thread keeps those up to date.
CONFIG = """
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 5s}
rule_files: [rules.yaml]
scrape_configs:
  - {job_name: operator, file_sd_configs: [{files: [operator.json], refresh_interval: 2s}]}
  - {job_name: jobs, file_sd_configs: [{files: [jobs.json], refresh_interval: 2s}]}
"""


def targets_of(selector):
    """What the ServiceMonitor or PodMonitor of the chart gives for the pods of a selector: their ports named status, status-1, …"""
    found = []
    for pod in json.loads(run("kubectl", "get", "pods", "-A", "-l", selector, "-o", "json"))["items"]:
        if pod["status"]["phase"] != "Running" or "podIP" not in pod["status"]:
            continue
        labels = pod["metadata"]["labels"]
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", []):
                if re.fullmatch("status(-[0-9]+)?", port.get("name", "")):
                    found.append({"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"], "labels": {
                        "namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"],
                        "container": container["name"], "job_name": labels.get("outrigger.dev/job-name", ""),
                        "role": labels.get("outrigger.dev/role", "")}})
    return found


def follow_pods():
    while True:
        for name, selector in (("operator", "app.kubernetes.io/component=operator"), ("jobs", "outrigger.dev/job-name")):
            try:
                targets = json.dumps(targets_of(selector))
            except Failed:  # the API server is busy; the next round asks again
                continue
            (FOLDER / f"{name}.new").write_text(targets)
            (FOLDER / f"{name}.new").rename(FOLDER / f"{name}.json")
        if _stopped.wait(2):
            return


def rules():
    """The chart's PrometheusRule as a rule file: its spec, which has the same form."""
    text = run("helm", "template", RELEASE, ROOT / "charts/outrigger", "--namespace", SYSTEM, "--kube-version", "1.34", "--show-only",
               "templates/rules.yaml", "--set", "monitoring.rules.enabled=true")
    return re.sub(r"^  ", "", text[text.index("\nspec:") + len("\nspec:"):], flags=re.MULTILINE)


def start():
    global _process  # pylint: disable=global-statement
    run("rm", "-rf", FOLDER)
    FOLDER.mkdir()
    (FOLDER / "rules.yaml").write_text(rules())
    (FOLDER / "prometheus.yaml").write_text(CONFIG)
    run("promtool", "check", "config", FOLDER / "prometheus.yaml")
    with open(FOLDER / "log", "wb") as log:
        _process = subprocess.Popen(
            ["prometheus", f"--config.file={FOLDER / 'prometheus.yaml'}", f"--storage.tsdb.path={FOLDER / 'data'}",
             f"--web.listen-address=127.0.0.1:{PORT}"], stdout=log, stderr=log)
    threading.Thread(target=follow_pods, daemon=True).start()


def stop():
    _stopped.set()
    if _process:
        _process.kill()
        _process.wait()


def ask(path, **parameters):
    """The data of an answer of Prometheus' HTTP API."""
    address = f"http://127.0.0.1:{PORT}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return json.load(answer)["data"]
    except (OSError, http.client.HTTPException, ValueError) as error:
        detail = error.read().decode()[:500] if hasattr(error, "read") else ""
        raise Failed(f"{path} {parameters}: {error} {detail}") from None
