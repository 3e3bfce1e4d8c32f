"""`/metrics` over a real socket: what it prints can be parsed, keeps to the catalogue, and is open on loopback."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.http_cast import Site, site

from keepsaid.domain.line import Line, LineState
from keepsaid.domain.metrics import METRICS, Distribution
from keepsaid.services.metrics import ProcessMetrics, of_status


async def scraped(here: Site) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """The series of one scrape without a token: by name, then by labels."""
    response = await here.client.get("/metrics")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(response.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


async def test_a_message_is_counted_from_its_arrival_to_its_turn(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        before = await scraped(here)
        response = await here.say("hello")
        await here.settled(response.json()["id"])
        after = await scraped(here)
    received = after["keepsaid_messages_received_total"]
    assert "keepsaid_messages_received_total" not in before
    assert received == {(("channel", "http"),): 1.0}
    assert after["keepsaid_turns_total"][("outcome", "committed"),] == 1.0
    assert after["keepsaid_lost_total"] == {(): 0.0}
    assert after["keepsaid_buffer_messages"][("channel", "http"), ("state", "queued")] == 0.0
    assert after["keepsaid_turn_seconds_count"] == {(): 1.0}
    assert after["keepsaid_reply_wait_seconds_count"] == {(): 1.0}
    assert after["keepsaid_route_wait_seconds_count"] == {(): 1.0}
    assert after["keepsaid_batches_routed_total"][("outcome", "forward"),] == 1.0
    assert after["keepsaid_recall_seconds_count"][("leg", "text"),] == 1.0
    assert sum(after["keepsaid_injected_total"].values()) == 1.0
    assert after["keepsaid_commit_seconds_count"][("store", "operations"),] > 3
    assert after["keepsaid_memory_writes_total"][("result", "kept"),] >= 1
    assert after["keepsaid_wal_bytes"][("store", "operations"),] > 0


async def test_every_family_is_in_the_catalogue_with_its_labels(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        response = await here.say("hello")
        await here.settled(response.json()["id"])
        text = (await here.client.get("/metrics")).text
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        metric = METRICS[name]
        assert family.type == metric.kind
        assert family.documentation == metric.meaning
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == {label.name for label in metric.labels}


async def test_all_series_together_are_bounded() -> None:
    assert sum(metric.series_max for metric in METRICS.values()) <= 2_000


async def test_no_label_names_a_person_or_a_conversation() -> None:
    named = {label.name for metric in METRICS.values() for label in metric.labels}
    assert named == {
        "account",
        "channel",
        "kind",
        "leg",
        "model",
        "outcome",
        "result",
        "state",
        "store",
        "type",
        "version",
    }


async def test_a_flood_of_names_keeps_the_series_bounded() -> None:
    counted = ProcessMetrics()
    for n in range(10_000):
        counted.add("keepsaid_replies_total", (f"channel-{n}", "confirm"))
        counted.observe("keepsaid_recall_seconds", 0.01, (f"leg-{n}",))
    read = counted.read()
    replies = read["keepsaid_replies_total"]
    assert len(replies) <= METRICS["keepsaid_replies_total"].combinations_max
    assert replies["other", "confirm"] == 10_000 - 20
    assert set(read["keepsaid_recall_seconds"]) == {("text",), ("vector",), ("fact",), ("graph",), ("other",)}


async def test_a_duration_falls_into_its_bucket_and_those_above_into_the_last() -> None:
    counted = ProcessMetrics()
    for seconds in (0.001, 0.0011, 1_000.0, -1.0):
        counted.observe("keepsaid_turn_seconds", seconds)
    found = counted.read()["keepsaid_turn_seconds"][()]
    assert isinstance(found, Distribution)
    assert (found.counts[0], found.counts[1], found.counts[-1], sum(found.counts)) == (2, 1, 1, 4)


async def test_a_client_token_closes_the_route_to_all_but_the_operator(tmp_path: Path) -> None:
    async with site(tmp_path, server={"port": 0, "token": "c" * 32}) as here:
        anybody = await here.client.get("/metrics")
        client = await here.client.get("/metrics", headers={"Authorization": f"Bearer {'c' * 32}"})
        owner = await here.client.get("/metrics", headers=here.owner)
    assert (anybody.status_code, client.status_code, owner.status_code) == (401, 401, 200)


async def test_what_a_proxy_passes_on_is_refused_without_a_token(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        passed = await here.client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"})
        owner = await here.client.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9", **here.owner})
    assert (passed.status_code, owner.status_code) == (403, 200)


async def test_metrics_that_are_switched_off_are_not_served(tmp_path: Path) -> None:
    async with site(tmp_path, telemetry={"metrics": False}) as here:
        response = await here.client.get("/metrics")
    assert response.status_code == 404
    assert response.json()["title"] == "metrics are switched off (telemetry.metrics)"


async def test_a_message_that_no_lane_accounts_for_is_counted_as_lost(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as here:
        await here.say("hello")
        with here.database(writing=True) as db:
            db.execute("UPDATE tally SET n = n + 2 WHERE what = 'heard'")
        after = await scraped(here)
    assert after["keepsaid_lost_total"] == {(): 2.0}


async def test_a_line_that_is_down_is_named_with_its_account(tmp_path: Path) -> None:
    lines = [Line("telegram", "bot", LineState.UP, 1, 5_000), Line("slack", "team", LineState.DOWN, 1, 0, "away")]
    async with site(tmp_path, answering=False) as here:
        status = await here.instance.services.status.read()
    read = dict(of_status(replace(status, host=replace(status.host, lines=lines))))
    assert read["keepsaid_line_up"] == {("telegram", "bot"): 1.0, ("slack", "team"): 0.0}
    assert read["keepsaid_line_last_ok_timestamp_seconds"] == {("telegram", "bot"): 5.0}


async def test_metrics_without_their_library_say_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("keepsaid.adapters.telemetry.prometheus", raising=False)
    monkeypatch.setitem(sys.modules, "keepsaid.adapters.telemetry.prometheus", None)
    async with site(tmp_path, answering=False) as here:
        response = await here.client.get("/metrics")
    assert response.status_code == 422
    assert "keepsaid[metrics]" in response.json()["hint"]
