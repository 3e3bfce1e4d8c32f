"""Metrics of real processes that share a database: what the store counts is the same in each, the rest is its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from tests.acceptance.program import WITHIN_S, Program, Running
from tests.postgres.server import empty

from keepsaid.adapters.postgres.connection import PostgresPlace

_QUIET = "models: {chat: none}\nbuffer: {window_ms: 0}\nserver: {port: 0}\n"


def at(home: Path, url: str) -> Program:
    """A home whose settings name a database."""
    made = Program(home, {"KEEPSAID_STORE__URL": url})
    made.configure(_QUIET)
    return made


def scraped(running: Running) -> dict[str, float]:
    """The series of a process without labels, and those with labels added up, by name."""
    response = httpx2.get(f"{running.url}/metrics", timeout=WITHIN_S, verify=False)
    assert response.status_code == 200, response.text
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def test_two_processes_report_one_store_and_each_its_own_turns(place: PostgresPlace, tmp_path: Path) -> None:
    empty(place)
    first = at(tmp_path / "first", place.url)
    with first.serving() as one:
        shutil.copytree(first.home, tmp_path / "second")
        second = at(tmp_path / "second", place.url)
        (second.home / "run" / "runtime.json").unlink()
        with second.serving() as other:
            for n in range(4):
                sent = first.run("inbox", "send", f"message {n}", "--json").json
                one.settled(sent["id"])
            both = scraped(one), scraped(other)
    for found in both:
        assert found["keepsaid_messages_received_total"] == 4
        assert found["keepsaid_turns_total"] == 4
        assert found["keepsaid_lost_total"] == 0
        assert "keepsaid_wal_bytes" not in found
    assert sum(found["keepsaid_turn_seconds_count"] for found in both) == 4
