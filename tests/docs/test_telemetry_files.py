"""The board and the alert rules name metrics, labels and values that `/metrics` prints, and every expression parses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.docs.markdown import ROOT

from keepsaid.adapters.telemetry.prometheus import render
from keepsaid.domain.metrics import BUCKETS, METRICS, Distribution, Label, Metric, MetricKind, Reading

FOLDER = ROOT / "docs" / "use" / "reference" / "telemetry"
RULES = yaml.safe_load((FOLDER / "keepsaid-alerts.yml").read_text("utf-8"))["groups"][0]["rules"]
BOARD = json.loads((FOLDER / "keepsaid-board.json").read_text("utf-8"))
_VARIABLES = {"$__rate_interval": "5m"}
_COUNTED = Distribution((1,) * (len(BUCKETS) + 1), 1.0)


def _label_value(label: Label) -> str:
    return label.values[0] if label.values else "any"


def _one_value(metric: Metric) -> float | Distribution:
    return _COUNTED if metric.kind is MetricKind.HISTOGRAM else 1.0


@cache
def printed() -> dict[str, frozenset[str]]:
    """The labels of every series that `/metrics` can print, by the name of the series."""
    values = {name: {tuple(map(_label_value, one.labels)): _one_value(one)} for name, one in METRICS.items()}
    found: dict[str, frozenset[str]] = {}
    for family in text_string_to_metric_families(render(Reading(values)).decode()):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, frozenset()) | sample.labels.keys()
    return found


def expressions() -> dict[str, str]:
    """Every expression by where it stands, with the variables of the board filled in."""
    found = {f"alert {rule['alert']}": rule["expr"] for rule in RULES}
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in _VARIABLES.items():
                expression = expression.replace(name, value)
            found[f"panel {panel['title']} {target['refId']}"] = expression
    return found


EXPRESSIONS = expressions()


def nodes(expression: Any) -> Iterator[Any]:
    """An expression and all that stands in it."""
    yield expression
    for name in ("expr", "lhs", "rhs", "param", "vector_selector"):
        inner = getattr(expression, name, None)
        if inner is not None:
            yield from nodes(inner)
    for argument in getattr(expression, "args", None) or ():
        yield from nodes(argument)


def selectors(expression: str) -> list[Any]:
    """What an expression reads."""
    return [one for one in nodes(promql.parse(expression)) if isinstance(one, promql.VectorSelector)]


def metric_of(series: str) -> Metric:
    """The metric that a series belongs to."""
    for ending in ("", "_bucket", "_count", "_sum"):
        if series.endswith(ending) and (found := METRICS.get(series.removesuffix(ending))):
            return found
    raise AssertionError(f"{series} belongs to no metric")


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_an_expression_reads_series_that_are_printed(where: str) -> None:
    read = selectors(EXPRESSIONS[where])
    assert read
    assert [one.name for one in read if one.name not in printed()] == []


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_an_expression_names_labels_and_values_that_exist(where: str) -> None:
    for selector in selectors(EXPRESSIONS[where]):
        labels = {label.name: label for label in metric_of(selector.name).labels}
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels
            assert set(matcher.value.split("|")) <= set(labels[matcher.name].values)


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_what_an_expression_groups_by_stands_on_its_series(where: str) -> None:
    for node in nodes(promql.parse(EXPRESSIONS[where])):
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            for selector in (one for one in nodes(node.expr) if isinstance(one, promql.VectorSelector)):
                assert set(node.modifier.labels) <= printed()[str(selector.name)]


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_counters_are_read_by_their_increase_and_gauges_as_they_are(where: str) -> None:
    for node in nodes(promql.parse(EXPRESSIONS[where])):
        if isinstance(node, promql.Call) and node.func.name in ("rate", "increase"):
            kinds = {metric_of(one.name).kind for one in selectors(str(node.args[0].prettify()))}
            assert MetricKind.GAUGE not in kinds


def test_a_wrong_name_is_found() -> None:
    assert next(one.name for one in selectors("rate(keepsaid_turn_secs_bucket[5m])")) not in printed()
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        promql.parse("sum(rate(keepsaid_turns_total[5m])")


def test_there_are_eight_alerts_that_say_what_to_do() -> None:
    assert len(RULES) == 8
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_every_metric_stands_on_the_board() -> None:
    shown = {metric_of(one.name).name for expression in EXPRESSIONS.values() for one in selectors(expression)}
    assert sorted(METRICS.keys() - shown) == []


def test_a_legend_names_labels_that_its_series_have() -> None:
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            named = {part.partition("}}")[0] for part in target["legendFormat"].split("{{")[1:]}
            series = selectors(EXPRESSIONS[f"panel {panel['title']} {target['refId']}"])
            assert named <= {label for one in series for label in printed()[one.name]}
