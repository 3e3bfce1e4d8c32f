"""Telemetry stays at its place: libraries in its adapters, unstable names in one file, and nothing to pay when off."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT

from keepsaid.domain.metrics import METRICS, MetricKind

PACKAGE = ROOT / "src" / "keepsaid"
ADAPTER = PACKAGE / "adapters" / "telemetry"
_IMPORTED = re.compile(r"^\s*(?:from|import) (?:opentelemetry|prometheus_client)\b", re.MULTILINE)


def holding(pattern: re.Pattern[str]) -> set[Path]:
    """The modules of the package whose source a pattern is found in."""
    return {path for path in PACKAGE.rglob("*.py") if pattern.search(path.read_text("utf-8"))}


def test_the_libraries_are_imported_by_their_adapters_alone() -> None:
    assert holding(_IMPORTED) == {ADAPTER / "otel.py", ADAPTER / "prometheus.py"}


def test_names_of_the_conventions_stand_in_one_file() -> None:
    assert holding(re.compile(r"\bgen_ai\.")) == {ADAPTER / "genai.py"}


def test_that_file_says_which_commit_was_read() -> None:
    source = (ADAPTER / "genai.py").read_text("utf-8")
    assert re.search(r"semantic-conventions-genai.*\bcommit\s+[0-9a-f]{40}\b", source, re.DOTALL)


def test_opening_a_home_loads_neither_library() -> None:
    program = "import sys, keepsaid.app.opening; print(*(n for n in sys.modules if n.startswith(sys.argv[1])))"
    for library in ("prometheus_client", "opentelemetry.sdk"):
        command = [sys.executable, "-c", program, library]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "src")
        assert ran.stdout.split() == []


_PASSING_BY = """
import tracemalloc

from keepsaid.domain.message import Lane
from keepsaid.ports.telemetry import NO_TELEMETRY, Doing

LANE = Lane("http", "default", "room", "root:room")


def pass_by():
    with NO_TELEMETRY.span(Doing.RECEIVE) as span:
        span.note("channel", "http")
        span.begins(1)
    with NO_TELEMETRY.turn_span(LANE, ()):
        NO_TELEMETRY.add("keepsaid_injected_total", ("injected",))
    NO_TELEMETRY.observe("keepsaid_turn_seconds", 1.0)


pass_by()
tracemalloc.start()
before = tracemalloc.get_traced_memory()[0]
for _ in range(1_000):
    pass_by()
print(tracemalloc.get_traced_memory()[0] - before)
"""


def test_without_a_listener_nothing_is_allocated() -> None:
    """In a process of its own: threads that other tests leave behind allocate too."""
    ran = subprocess.run(
        [sys.executable, "-c", _PASSING_BY], capture_output=True, text=True, check=True, cwd=ROOT / "src"
    )
    assert int(ran.stdout) < 1_000


def test_names_of_metrics_follow_the_rules_of_prometheus() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"keepsaid_[a-z]+(_[a-z]+)*", name)
        assert name.endswith("_total") is (metric.kind is MetricKind.COUNTER)
        assert name.endswith("_seconds") or metric.kind is not MetricKind.HISTOGRAM
        assert not re.search(r"_(ms|millis|kb|mb|percent)\b", name)
