"""A real Prometheus reads the operator, servers and workers; the chart's alerts load and its dashboard shows something."""

import json
import math
import time

from cases.install import CHART, TRAINS
from lib import prometheus
from lib.harness import RELEASE, expect, run, until


def scrapes():
    def count(query):
        found = prometheus.ask("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else 0

    until("both replicas of the operator are scraped", 30, lambda: count('sum(up{job="operator"})') == 2)
    leaders = count(f'sum(leader_election_master_status{{name="{RELEASE}"}})')
    expect(leaders == 1, f"not one replica but {leaders:.0f} say that they lead")
    for role in ("server", "worker"):
        scraped = count(f'count(count_over_time(up{{job="jobs",role="{role}"}}[30m]) > 0)')
        expect(scraped > 0, f"no {role} was scraped")
    for metric in ("outrigger_server_steps_total", "outrigger_worker_micro_batches_total"):
        found = count(f'max(max_over_time({metric}{{namespace="research",job_name="faces"}}[30m]))')
        expect(found > 0, f"{metric} of the job faces was never above 0")


def rules_load():
    run("promtool", "check", "rules", prometheus.FOLDER / "rules.yaml")
    groups = prometheus.ask("rules")["groups"]
    loaded = [rule for group in groups for rule in group["rules"]]
    wanted = (CHART / "files/alerts.yaml").read_text().count("- alert:")
    expect(len(loaded) == wanted, f"{len(loaded)} of {wanted} alerts are loaded")
    until("every alert was evaluated", 30, lambda: all(
        rule["health"] == "ok" for group in prometheus.ask("rules")["groups"] for rule in group["rules"]))


def panels():
    dashboard = json.loads((CHART / "files/dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            inner = variable["query"]["query"].removeprefix("label_values(").rsplit(",", 1)[0]
            yield "variable " + variable["name"], inner


def has_numbers(result):
    return any(not math.isnan(float(value)) for series in result for _, value in series["values"])


def dashboard_shows():
    now = time.time()
    empty = []
    for title, query in panels():
        query = query.replace("$__rate_interval", "20s").replace("$namespace", ".*").replace("$job", ".*")
        found = prometheus.ask("query_range", query=query, start=now - 1500, end=now, step=5)["result"]
        if not has_numbers(found):
            empty.append(f"{title}: {query}")
    expect(not empty, "without data: " + "; ".join(empty))


CASES = [
    ("Prometheus scrapes the operator, servers and workers", [TRAINS], scrapes),
    ("the chart's alerts load and evaluate", [TRAINS], rules_load),
    ("every query of the Grafana dashboard returns data", [TRAINS], dashboard_shows),
]
