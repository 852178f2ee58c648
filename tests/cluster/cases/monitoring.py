"""A real Prometheus reads the operator, servers and workers; the chart's alerts load and its dashboard shows something."""

import json
import math
import time

from cases.install import CHART, TRAINS
from lib import prometheus
from lib.harness import RELEASE, expect, run, until

# Seconds that hold all that the cases before have done; longer than they may take (LONGEST of tests/cluster/run).
SINCE = 3600


def scrapes():
    def count(query):
        found = prometheus.ask("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else 0

    until("both replicas of the operator are scraped", 60, lambda: count('sum(up{job="operator"})') == 2)
    # They are not scraped at one moment, and who led may just have handed it on.
    until("one replica says that it leads", 60, lambda: count(f'sum(leader_election_master_status{{name="{RELEASE}"}})') == 1)
    for role in ("server", "worker"):
        scraped = f'count(count_over_time(up{{job="jobs",role="{role}"}}[{SINCE}s]) > 0)'
        until(f"a {role} was scraped", 60, lambda: count(scraped) > 0)
    for metric in ("outrigger_server_steps_total", "outrigger_worker_micro_batches_total"):
        most = f'max(max_over_time({metric}{{namespace="research",job_name="faces"}}[{SINCE}s]))'
        until(f"{metric} of the job faces was above 0", 60, lambda: count(most) > 0)


def rules_load():
    run("promtool", "check", "rules", prometheus.FOLDER / "rules.yaml")
    wanted = (CHART / "files/alerts.yaml").read_text().count("- alert:")

    def loaded():
        return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]

    until(f"{wanted} alerts are loaded", 60, lambda: len(loaded()) == wanted)
    until("every alert was evaluated", 60, lambda: all(rule["health"] == "ok" for rule in loaded()))


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


def every_panel_shows():
    now = time.time()
    empty = []
    for title, query in panels():
        query = query.replace("$__rate_interval", "20s").replace("$namespace", ".*").replace("$job", ".*")
        found = prometheus.ask("query_range", query=query, start=now - SINCE, end=now, step=5)["result"]
        if not has_numbers(found):
            empty.append(f"{title}: {query}")
    expect(not empty, "without data: " + "; ".join(empty))
    return True


def dashboard_shows():
    until("every query returned data", 60, every_panel_shows)


CASES = [
    ("Prometheus scrapes the operator, servers and workers", [TRAINS], scrapes),
    ("the chart's alerts load and evaluate", [TRAINS], rules_load),
    ("every query of the Grafana dashboard returns data", [TRAINS], dashboard_shows),
]
