"""`/metrics` over a real socket: what it prints can be parsed, keeps to the catalogue, and is open on loopback."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.unit.http_cast import Site, site

from keepsaid.domain.metrics import METRICS


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
