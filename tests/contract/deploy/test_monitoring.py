"""Dashboard and alerts speak of metrics that the services have, and Prometheus asks where they are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.metrics import MetricWrapperBase

from taskexecutor_common.observability import metrics
from tests.contract.deploy.files import ROOT, SETTINGS, containers, text

SUFFIXES = {Histogram: ["_bucket", "_sum", "_count"], Counter: ["_total"], Gauge: [""]}
FROM_PROMETHEUS = {"job", "instance", "le"}
DASHBOARD = "deploy/grafana/dashboards/taskexecutor.json"
RULES = "deploy/prometheus/rules/taskexecutor.yml"
RULES_TEST = "deploy/prometheus/rules_test.yml"


def series() -> dict[str, set[str]]:
    """Every series that a service may show, with its labels."""
    found: dict[str, set[str]] = {}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            for suffix in SUFFIXES[type(metric)]:
                found[f"{metric._name}{suffix}"] = set(metric._labelnames)
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in json.loads(text(DASHBOARD))["panels"] if panel["type"] != "row"]


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(text(RULES))["groups"] for rule in group["rules"]]


def expressions() -> list[str]:
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    return shown + [alert["expr"] for alert in alerts()]


def labels(expression: str) -> set[str]:
    """What an expression filters and groups by."""
    grouped = re.findall(r"\b(?:by|without|on) \(([^)]*)\)", expression)
    filtered = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"", expression)
    return {name.strip() for group in grouped for name in group.split(",")} | set(filtered)


def test_there_are_series_to_compare_with() -> None:
    known = series()
    assert known["taskexecutor_attempts_total"] == {"endpoint_type", "outcome"}
    assert "taskexecutor_lateness_seconds_bucket" in known


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_only_what_the_services_show(expression: str) -> None:
    known = series()
    named = set(re.findall(r"\btaskexecutor_\w+", expression))
    assert named <= set(known)
    assert labels(expression) <= FROM_PROMETHEUS.union(*(known[name] for name in named))


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_legend_names_only_labels_that_are_left(panel: dict[str, Any]) -> None:
    known = series()
    for target in panel["targets"]:
        legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        grouped = re.findall(r"\bby \(([^)]*)\)", target["expr"])
        (name,) = set(re.findall(r"\btaskexecutor_\w+?(?=_(?:bucket|sum|count)\b|\b)", target["expr"]))
        bare = known.get(name, set()) | {"job", "instance"}
        assert legend <= ({part.strip() for part in grouped[0].split(",")} if grouped else bare)


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in panels() for target in panel["targets"])
    names = {metric._name for metric in vars(metrics).values() if isinstance(metric, MetricWrapperBase)}
    assert {name for name in names if not re.search(rf"\b{name}(_|\b)", shown)} == set()


def test_every_alert_says_how_urgent_it_is_and_what_it_means() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert alert["annotations"]["summary"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool on this machine")
@pytest.mark.parametrize("command", [("check", "rules", RULES), ("test", "rules", RULES_TEST)], ids=" ".join)
def test_promtool_finds_that_alerts_fire_when_they_should_and_only_then(command: tuple[str, ...]) -> None:
    ran = subprocess.run(["promtool", *command], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_operations_page_says_what_to_do_about_every_alert() -> None:
    assert {alert["alert"] for alert in alerts()} == set(
        re.findall(r"^\| `(\w+)` \|", text("docs/operations.md"), re.M)
    )


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    everything = json.loads(text(DASHBOARD))["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in everything)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)


def test_prometheus_asks_every_service_where_it_shows_its_metrics() -> None:
    asked = {
        name: lookup["port"]
        for job in yaml.safe_load(text("deploy/prometheus/prometheus.yml"))["scrape_configs"]
        for lookup in job["dns_sd_configs"]
        for name in lookup["names"]
    }
    assert set(asked) <= set(containers())
    for name in set(SETTINGS) - {"migrate"}:
        assert containers()[name]["environment"]["TE_METRICS_ADDR"] == f"0.0.0.0:{asked[name]}"


def test_prometheus_finds_its_files_where_they_are_mounted() -> None:
    assert "--config.file=/etc/prometheus/prometheus.yml" in containers()["prometheus"]["command"]
    assert "./deploy/prometheus:/etc/prometheus:ro" in containers()["prometheus"]["volumes"]
    patterns = yaml.safe_load(text("deploy/prometheus/prometheus.yml"))["rule_files"]
    assert [str(path.relative_to(ROOT)) for p in patterns for path in (ROOT / "deploy/prometheus").glob(p)] == [RULES]


def test_grafana_finds_the_dashboard_and_the_data() -> None:
    (provider,) = yaml.safe_load(text("deploy/grafana/provisioning/dashboards/taskexecutor.yml"))["providers"]
    (source,) = yaml.safe_load(text("deploy/grafana/provisioning/datasources/prometheus.yml"))["datasources"]
    container = containers()["grafana"]
    assert f"./deploy/grafana/dashboards:{provider['options']['path']}:ro" in container["volumes"]
    assert "./deploy/grafana/provisioning:/etc/grafana/provisioning:ro" in container["volumes"]
    home = container["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{provider['options']['path']}/taskexecutor.json"
    assert source["url"] == "http://prometheus:9090"
    assert {target["datasource"]["uid"] for panel in panels() for target in panel["targets"]} == {source["uid"]}
