"""Prints metrics in the text format of Prometheus, with the library prometheus-client (extra `metrics`)."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import core, exposition

from keepsaid.domain.metrics import BUCKETS, Distribution, Metric, MetricKind, Reading, Values

CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4
"""The media type of the text."""

_BOUNDS = tuple(f"{bound:g}" for bound in BUCKETS)


class _OneReading:
    """A collector, as the library asks for one, over values that were read already."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def collect(self) -> Iterator[core.Metric]:
        """Every metric with its values."""
        for metric, values in self._reading.families():
            yield _family(metric, values)


def render(reading: Reading) -> bytes:
    """One scrape as text, format version 0.0.4: every metric with its help, its type and its series."""
    registry = core.CollectorRegistry(auto_describe=False)
    registry.register(_OneReading(reading))
    return exposition.generate_latest(registry)


def _family(metric: Metric, values: Values) -> core.Metric:
    names = [label.name for label in metric.labels]
    if metric.kind is MetricKind.HISTOGRAM:
        histogram = core.HistogramMetricFamily(metric.name, metric.meaning, labels=names)
        for labels, value in values.items():
            if isinstance(value, Distribution):
                histogram.add_metric(labels, list(_cumulated(value)), value.total_s)
        return histogram
    kind = core.CounterMetricFamily if metric.kind is MetricKind.COUNTER else core.GaugeMetricFamily
    family = kind(metric.name, metric.meaning, labels=names)
    for labels, value in values.items():
        if not isinstance(value, Distribution):
            family.add_metric(labels, value)
    return family


def _cumulated(value: Distribution) -> Iterator[tuple[str, float]]:
    """The buckets as the format has them: each counts everything up to its bound."""
    total = 0
    for bound, count in zip((*_BOUNDS, "+Inf"), value.counts, strict=True):
        total += count
        yield bound, float(total)
