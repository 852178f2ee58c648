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

import yaml

from lib.harness import Failed, RELEASE, ROOT, SYSTEM, expect, run

PORT = 19090
FOLDER = pathlib.Path(tempfile.gettempdir()) / "outrigger-prometheus"
_process = None
_stopped = threading.Event()


def rendered(template, *values):
    sets = [part for value in values for part in ("--set", f"monitoring.{value}.enabled=true")]
    return run("helm", "template", RELEASE, ROOT / "charts/outrigger", "--namespace", SYSTEM, "--kube-version", "1.34",
               "--show-only", f"templates/{template}.yaml", *sets)


def selected(kind, monitor):
    """The objects that a monitor selects, in the namespaces that it looks at: its own, unless it says which."""
    spec, own = monitor["spec"], [monitor["metadata"]["namespace"]]
    query = [f"{key}={value}" for key, value in spec["selector"].get("matchLabels", {}).items()]
    for one in spec["selector"].get("matchExpressions", []):
        if one["operator"] != "Exists":
            raise ValueError(f"a selector that this test does not read: {one}")
        query.append(one["key"])
    places = spec.get("namespaceSelector", {})
    for where in (["-A"] if places.get("any") else [f"--namespace={name}" for name in places.get("matchNames", own)]):
        yield from json.loads(run("kubectl", "get", kind, where, "-l", ",".join(query), "-o", "json"))["items"]


def targets_of_services(monitor):
    """What a ServiceMonitor gives. EndpointSlices bear the labels of their Services."""
    (endpoint,) = monitor["spec"]["endpoints"]
    for behind in selected("endpointslices", monitor):
        ports = [port["port"] for port in behind.get("ports") or [] if port.get("name") == endpoint["port"]]
        for address in behind.get("endpoints") or []:
            labels = {"namespace": behind["metadata"]["namespace"], "pod": address["targetRef"]["name"]}
            yield from ({"targets": [f"{address['addresses'][0]}:{port}"], "labels": labels} for port in ports)


def targets_of_pods(monitor):
    """What a PodMonitor gives: every port of every container, of which its relabelings keep some."""
    for pod in selected("pods", monitor):
        if pod["status"]["phase"] != "Running" or "podIP" not in pod["status"]:
            continue
        labels = {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"]}
        for key, value in pod["metadata"]["labels"].items():
            labels["__meta_kubernetes_pod_label_" + re.sub("[^a-zA-Z0-9_]", "_", key)] = value
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", []):
                yield {"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"], "labels": {
                    **labels, "container": container["name"],
                    "__meta_kubernetes_pod_container_port_name": port.get("name", "")}}


def scrape(name, endpoint):
    """As the Prometheus operator says it to Prometheus. Debian's build finds no pods by itself, so a file names them."""
    relabelings = [{re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), key): value for key, value in rule.items()}
                   for rule in endpoint.get("relabelings", [])]
    return {"job_name": name, "metrics_path": endpoint["path"], "relabel_configs": relabelings,
            "file_sd_configs": [{"files": [f"{name}.json"], "refresh_interval": "2s"}]}


class Monitors:
    """The chart's ServiceMonitor of the operator and its PodMonitor of the jobs."""

    def __init__(self):
        text = rendered("monitors", "serviceMonitor", "podMonitor")
        kinds = {monitor["kind"]: monitor for monitor in yaml.safe_load_all(text)}
        self.services, self.pods = kinds["ServiceMonitor"], kinds["PodMonitor"]

    def config(self):
        (of_operator,), (of_jobs,) = self.services["spec"]["endpoints"], self.pods["spec"]["podMetricsEndpoints"]
        return {"global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "5s"},
                "rule_files": ["rules.yaml"],
                "scrape_configs": [scrape("operator", of_operator), scrape("jobs", of_jobs)]}

    def follow(self):
        """Keeps the files of targets up to date until stop()."""
        while True:
            for name, targets, monitor in (("operator", targets_of_services, self.services),
                                           ("jobs", targets_of_pods, self.pods)):
                try:
                    text = json.dumps(list(targets(monitor)))
                except Failed:  # the API server is busy; the next round asks again
                    continue
                (FOLDER / f"{name}.new").write_text(text)
                (FOLDER / f"{name}.new").rename(FOLDER / f"{name}.json")
            if _stopped.wait(2):
                return


def start():
    global _process  # pylint: disable=global-statement
    run("rm", "-rf", FOLDER)
    FOLDER.mkdir()
    monitors = Monitors()
    # A PrometheusRule's spec has the form of a rule file, and JSON is YAML.
    (FOLDER / "rules.yaml").write_text(json.dumps(yaml.safe_load(rendered("rules", "rules"))["spec"]))
    (FOLDER / "prometheus.yaml").write_text(json.dumps(monitors.config()))
    run("promtool", "check", "config", FOLDER / "prometheus.yaml")
    with open(FOLDER / "log", "wb") as log:
        _process = subprocess.Popen(
            ["prometheus", f"--config.file={FOLDER / 'prometheus.yaml'}", f"--storage.tsdb.path={FOLDER / 'data'}",
             f"--web.listen-address=127.0.0.1:{PORT}"], stdout=log, stderr=log)
    threading.Thread(target=monitors.follow, daemon=True).start()


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
