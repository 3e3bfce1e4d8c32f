"""What it costs to learn from an informative chat: calls of the extracting model for each message of a person."""

from __future__ import annotations

from tests.unit.collection_cast import Scene

from keepsaid.config import Config
from keepsaid.domain.session import Rest
from keepsaid.memory.extraction import ExtractionLimits

CALLS_MAX = 0.2
"""Design: at most so many calls of memory for a message of a person."""

TALKS, EACH, BETWEEN_MS, TICK_MS, HOUR_MS = 12, 20, 10_000, 30_000, 3_600_000


async def test_a_chat_full_of_facts_costs_a_fifth_of_a_call_for_each_message() -> None:
    """Each talk is twenty messages, ten seconds apart, and ends an hour later; the collector looks every 30 seconds."""
    settings = Config().collection
    scene = Scene(reading=ExtractionLimits(settings.records_max, settings.tokens_max, ripe=settings.records_min))
    for talk in range(TALKS):
        for n in range(EACH):
            await scene.talk(f"my box number {talk * EACH + n} is in Oslo")
            await scene.clock.advance(BETWEEN_MS)
            if (n + 1) * BETWEEN_MS % TICK_MS == 0:
                await scene.collector.tick()
        await scene.clock.advance(HOUR_MS + TICK_MS)
        now = scene.clock.now_ms()
        steady = scene.clock.due_ms()
        await scene.operations.apply(Rest(steady - 60_000, steady - HOUR_MS, steady, now))
        await scene.collector.tick()
    assert len(scene.learnings.texts) == TALKS * EACH, "all is learned in the end"
    assert len(scene.extractor.asked) <= CALLS_MAX * TALKS * EACH
