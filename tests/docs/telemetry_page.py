"""The page of every metric, made from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.markdown import lines_of, table

from keepsaid.domain.metrics import BUCKETS, LABEL_CHARS_MAX, METRICS, OTHER, Label, Metric, MetricKind, Reach

_HEAD = """\
# Metrics

`GET /metrics` on the port of `keepsaid serve` prints every metric in the text format of Prometheus. It needs the
extra `metrics`: `pip install './keepsaid[metrics]'`. On loopback it needs no token unless `server.token` is set;
everywhere else it needs the operator's token (`server.operator_token`).

```yaml
scrape_configs:
  - job_name: keepsaid
    static_configs:
      - targets: ["127.0.0.1:7448"]
```

Names and labels are stable. No label names a sender, a conversation or a text. All metrics together have at most
SERIES series: a label has a bounded number of values, and what lies beyond has the value `OTHER`. A value is cut
after CHARS characters.

- **store**: read from the store at each scrape. It survives restarts. If several processes share a database, each
  reports the same value: combine them with `max`, not with `sum`.
- **process**: counted by one process since its start. Combine processes with `sum`.

Histograms have the buckets BUCKETS seconds.
"""


def page() -> str:
    """The whole page."""
    series = f"{sum(one.series_max for one in METRICS.values()):,}"
    buckets = ", ".join(f"{one:g}" for one in BUCKETS)
    head = _HEAD.replace("SERIES", series).replace("OTHER", OTHER).replace("CHARS", str(LABEL_CHARS_MAX))
    parts = [head.replace("BUCKETS", buckets)]
    for reach in Reach:
        rows = [list(_row(one)) for one in METRICS.values() if one.reach is reach]
        parts += [f"## Of the {reach}\n", table(["metric", "type", "meaning", "labels"], rows)]
    return lines_of("\n".join(parts))


def _row(metric: Metric) -> Iterator[str]:
    yield f"`{metric.name}`"
    yield metric.kind if metric.kind is not MetricKind.HISTOGRAM else "histogram, seconds"
    yield metric.meaning
    yield "; ".join(map(_label, metric.labels)) or "none"


def _label(label: Label) -> str:
    values = ", ".join(f"`{one}`" for one in label.values) or f"at most {label.most:,} values"
    return f"`{label.name}`: {label.meaning} ({values})"
