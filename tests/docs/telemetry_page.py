"""The page of every metric and every span, made from the catalogue and from what names spans."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.markdown import lines_of, table

from keepsaid.adapters.telemetry import genai
from keepsaid.domain.metrics import BUCKETS, LABEL_CHARS_MAX, METRICS, OTHER, Label, Metric, MetricKind, Reach
from keepsaid.ports.telemetry import Doing
from keepsaid.text.normal import counted

_HEAD = """\
# Telemetry

What keepsaid counts and traces, for Prometheus and OpenTelemetry. The settings are `telemetry.*` in
[configuration](config.md).

## Metrics

`GET /metrics` on the port of `keepsaid serve` prints every metric in the text format of Prometheus. It needs the
extra `metrics`: `pip install './keepsaid[metrics]'`. On loopback it needs no token unless `server.token` is set;
everywhere else it needs the operator's token (`server.operator_token`).

```text
scrape_configs:
  - job_name: keepsaid
    static_configs:
      - targets: ["127.0.0.1:7448"]
```

[keepsaid-board.json](telemetry/keepsaid-board.json) is a board for Grafana that shows every metric, and
[keepsaid-alerts.yml](telemetry/keepsaid-alerts.yml) has eight alert rules for Prometheus. Import the one, and name
the other under `rule_files`.

Names and labels are stable. No label names a sender, a conversation or a text. All metrics together have at most
SERIES series: a label has a bounded number of values, and what lies beyond has the value `OTHER`. A value is cut
after CHARS characters.

- **store**: read from the store at each scrape. It survives restarts. If several processes share a database, each
  reports the same value: combine them with `max`, not with `sum`.
- **process**: counted by one process since its start. Combine processes with `sum`.

Histograms have the buckets BUCKETS seconds.
"""

_TRACES = """\
## Traces

With `telemetry.traces: true` keepsaid sends spans over OTLP/HTTP. It needs the extra `otel`:
`pip install './keepsaid[otel]'`. Spans are sent in batches from a thread; a collector that is away delays no message,
and a stop waits four seconds at most.

```yaml
telemetry:
  traces: true
  endpoint: http://localhost:4318/v1/traces
  share: 0.1
```

No attribute holds text, a sender or the name of a conversation. A lane is a hash that only this home can compute. A
failure is the name of its class, without its message.

- Attributes that begin with `keepsaid.` are stable, and so are the names of spans in the column *own name*.
- With `telemetry.genai: latest`, the default, spans have the names and attributes of OpenTelemetry's conventions for
  generative AI too. These still change between releases. With `off` they have own names alone.
- Each call of the model has one span, `chat MODEL`, which pydantic-ai makes. It needs `genai: latest`.
- A line of the log that is written within a span has the id of its trace, `trace_id`.
- The span of a turn is linked to the spans in which its messages arrived, if the same process received them.
"""

_NOTED = {
    Doing.RECEIVE: ("keepsaid.channel", "keepsaid.intake"),
    Doing.TURN: ("keepsaid.channel", "keepsaid.lane"),
    Doing.TOOL: ("keepsaid.tool", "keepsaid.tool_class", "keepsaid.call_id", genai.note("call_id")),
    Doing.DELIVER: ("keepsaid.channel", "keepsaid.outcome", "keepsaid.attempt"),
}
_OF_MEMORY = ("keepsaid.records", genai.note("records"))


def page() -> str:
    """The whole page."""
    series = f"{sum(one.series_max for one in METRICS.values()):,}"
    buckets = ", ".join(f"{one:g}" for one in BUCKETS)
    head = _HEAD.replace("SERIES", series).replace("OTHER", OTHER).replace("CHARS", str(LABEL_CHARS_MAX))
    parts = [head.replace("BUCKETS", buckets)]
    for reach in Reach:
        rows = [list(_row(one)) for one in METRICS.values() if one.reach is reach]
        parts += [f"### Of the {reach}\n", table(["metric", "type", "meaning", "labels"], rows)]
    spans = [list(_span(one)) for one in Doing]
    parts += [_TRACES, table(["span", "own name", "attributes"], spans)]
    return lines_of("\n".join(parts))


def _span(doing: Doing) -> Iterator[str]:
    own = f"keepsaid.{doing}"
    yield f"`{genai.span_name(doing, 'TOOL') or own}`"
    yield f"`{own}`"
    theirs = (*genai.attributes(doing, "TOOL", "AGENT"), *([genai.CONVERSATION] if doing is Doing.TURN else []))
    yield ", ".join(f"`{one}`" for one in (*_NOTED.get(doing, _OF_MEMORY), *theirs))


def _row(metric: Metric) -> Iterator[str]:
    yield f"`{metric.name}`"
    yield metric.kind if metric.kind is not MetricKind.HISTOGRAM else "histogram, seconds"
    yield metric.meaning
    yield "; ".join(map(_label, metric.labels)) or "none"


def _label(label: Label) -> str:
    values = ", ".join(f"`{one}`" for one in label.values) or counted(label.most, "value at most", "values at most")
    return f"`{label.name}`: {label.meaning} ({values})"
