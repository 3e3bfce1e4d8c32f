"""Every topic the core declares is told by something, and what is told is what its schema says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contract.conftest import amiss
from tests.contract.kept import Kept

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import TaskDraft
from keepsaid.domain.command import ExecutedCommand
from keepsaid.domain.commits import ClaimBatches, Drop, Fail, Failure, Resend, Settle, TakeReplies, Tell, TurnCommit
from keepsaid.domain.compaction import CutContext, CutReason, Summarise, SummaryFailed
from keepsaid.domain.context import Made
from keepsaid.domain.event import TellNews, events_of
from keepsaid.domain.forgetting import MoveForgetting
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.route import Action
from keepsaid.domain.schedule import What
from keepsaid.domain.scheduling import EndRun, SettleRun
from keepsaid.domain.session import CollectionFailed, Rest
from keepsaid.domain.task import CancelTask, NewTask
from keepsaid.engine.supervisor import BacklogLimits, BacklogMonitor
from keepsaid.events.catalog import CORE
from keepsaid.testing.builders import AT_ONCE, CHANNEL, lane_of, outcome, said, verdict
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit import contracts
from keepsaid_testkit.contracts.collection import claim, ends, talked
from keepsaid_testkit.contracts.forgetting import complete_turn, request
from keepsaid_testkit.contracts.news import ARCHIVED, SAVED, SAVED_TOO, SUPERSEDED
from keepsaid_testkit.contracts.schedules import add, come
from keepsaid_testkit.contracts.store_driver import StoreDriver
from keepsaid_testkit.contracts.tasks import TaskDriver

_HOUR = 3_600_000
_TESTS = Path(__file__).resolve().parents[1]


async def _answered(road: StoreDriver) -> None:
    """A message is answered, and the reply goes out; another is a command."""
    await road.settle(said())
    [reply] = await road.store.apply(TakeReplies((CHANNEL,), "one", 9, 0))
    await road.store.apply(Settle(reply.id, reply.fence, Delivered.CONFIRMED, 1))
    queued = await road.queue(said("/reset"))
    claimed = await road.claim_one()
    end = replace(outcome(), executed=(ExecutedCommand(queued.first.id, "reset", "done", 0),), begins_anew=True)
    await road.store.apply(TurnCommit(claimed.turn_id, queued.batch_id, claimed.batch.fence, end, None, 2))


async def _judged(road: StoreDriver) -> None:
    """Rules drop one and spawn one; a person drops another; two wait and are put together."""
    await road.queue(said(room="noise"), 0, verdict(Action.DROP, "noise"))
    spawned = await road.receive(said(room="work"))
    await road.route(spawned.lane, 0, verdict(Action.SPAWN, "work"), task=TaskDraft(900, "k", "do"))
    dropped = await road.queue(said(room="dropped"))
    assert await road.store.apply(Drop(dropped.batch_id, 3, "not wanted"))
    for _ in range(2):
        await road.receive(said(room="two"))
        await road.route(lane_of("two"), window=replace(AT_ONCE, count_max=9))


async def _failed(road: StoreDriver) -> None:
    """One is given up, one waits for a person."""
    for how in (Failure.BURY, Failure.PARK):
        queued = await road.queue(said(room=how))
        claimed = await road.claim_one()
        await road.store.apply(Fail(queued.batch_id, claimed.batch.fence, how, "it broke", 4))


async def _replied(road: StoreDriver) -> None:
    """One reply is doubtful and given up, one is dead, one refused."""
    ends = (Delivered.DOUBT, Delivered.DEAD, Delivered.REFUSED)
    for what in ends:
        await road.settle(said(room=what))
    for reply in await road.store.apply(TakeReplies((CHANNEL,), "one", 9, 0)):
        assert await road.store.apply(Settle(reply.id, reply.fence, Delivered(reply.lane.conversation), 6))
    assert await road.store.apply(Resend(frozenset((CHANNEL,)), 8)) == 1


async def _rested(road: StoreDriver) -> None:
    """A session sleeps, wakes, is replaced by another, which ends."""
    await road.settle(said())
    await road.store.apply(Rest(0, -1, 60_000, 60_000))
    await road.settle(said(), at=70_000)
    await road.settle(said(), at=_HOUR)
    await road.store.apply(Rest(2 * _HOUR, 2 * _HOUR, 9 * _HOUR, 9 * _HOUR))


async def _compacted(road: StoreDriver) -> None:
    """What a lane's context holds goes: into a summary, because it does not fit, by a person's word."""
    for text in ("one", "two"):
        await road.settle(said(text))
    store, lane = road.store, lane_of()
    assert await store.apply(Summarise(lane, 0, 1, "one was said", Made.MODEL, "test/model", 5))
    assert await store.apply(CutContext(lane, 1, 2, CutReason.GUARD, 6))
    assert await store.apply(SummaryFailed(lane, 2, "no model", 99, 7))
    assert await store.apply(CutContext(lane, 2, 4, CutReason.RESET, 8))


async def _read(road: StoreDriver) -> None:
    """A session is read, another is given up."""
    await talked(road, 3)
    one = await claim(road.store)
    await ends(road.store, one, 6)
    await talked(road, 3, room="den")
    one = await claim(road.store)
    assert await road.store.apply(CollectionFailed(one.session_id, one.fence, "again and again", 0, None))


async def _forgotten(road: StoreDriver) -> None:
    """A message is forgotten."""
    scrubbed = await request(road.store, await complete_turn(road, "the zebra is called Rex"))
    assert not scrubbed.left
    for verb in ("hide", "erase", "scrub", "checkpoint", "finish"):
        assert await road.store.apply(MoveForgetting(500, verb, 62, (("memories", 1),)))


async def _remembered(road: StoreDriver) -> None:
    """Memory learned something, put it right, and put it away."""
    assert await road.store.apply(TellNews((SAVED, SAVED_TOO, SUPERSEDED, ARCHIVED), 5)) == 4


async def _called_off(road: StoreDriver) -> None:
    """A task is called off."""
    desk = TaskDriver(road.store)
    assert await desk.make(NewTask(1, "look at it")) == ""
    assert await road.store.apply(CancelTask(1, 8, "not wanted"))


async def _delivered(road: StoreDriver) -> None:
    """What a schedule had to say has left."""
    await add(road.store)
    key = await come(road.store)
    await road.store.apply(EndRun(key, "execute", 100, reply=ReplyDraft(70, "drink")))
    [taken] = await road.store.apply(TakeReplies((CHANNEL,), "one", 9, 200))
    await road.store.apply(Settle(70, taken.fence, Delivered.CONFIRMED, 210))
    assert await road.store.apply(SettleRun(key, "deliver", 220))


async def _unheard(road: StoreDriver) -> None:
    """What a schedule had to say is refused by its channel; to another question there was no answer."""
    await add(road.store)
    key = await come(road.store)
    await road.store.apply(EndRun(key, "execute", 100, reply=ReplyDraft(70, "drink")))
    [taken] = await road.store.apply(TakeReplies((CHANNEL,), "one", 9, 200))
    await road.store.apply(Settle(70, taken.fence, Delivered.REFUSED, 210))
    assert await road.store.apply(SettleRun(key, "lose", 220, "refused"))
    await add(road.store, number=2, what=What.ASK)
    key = await come(road.store, number=2)
    received = await road.receive(said("what is new?", room="den"), 100)
    await road.store.apply(EndRun(key, "execute", 100, message_id=received.id))
    assert await road.store.apply(SettleRun(key, "end", 200)) == "active"


async def _crowded(road: StoreDriver) -> None:
    """More waits than may."""
    for _ in range(3):
        await road.receive(said())
    await BacklogMonitor(road.store, VirtualClock(), BacklogLimits(count=2, age_ms=9)).work()


Scene = Callable[[StoreDriver], Awaitable[None]]
SCENES: dict[Scene, frozenset[str]] = {
    _answered: frozenset(
        ["message.received", "batch.routed", "turn.started", "turn.committed", "reply.sent", "command.executed"]
    ),
    _judged: frozenset(["batch.routed", "batch.dropped"]),
    _failed: frozenset(["batch.dead", "batch.parked", "turn.abandoned"]),
    _replied: frozenset(["reply.unknown", "reply.dead", "reply.not_deliverable"]),
    _rested: frozenset(["session.started", "session.sleeping", "session.woke", "session.rotated", "session.ended"]),
    _compacted: frozenset(["lane.compacted", "lane.summary_failed", "lane.reset"]),
    _read: frozenset(["memory.session_completed", "memory.session_parked"]),
    _forgotten: frozenset(["memory.forgotten"]),
    _remembered: frozenset(["memory.saved", "memory.superseded", "memory.archived"]),
    _called_off: frozenset(["task.created", "task.cancelled"]),
    _delivered: frozenset(["schedule.fired", "schedule.executed", "schedule.delivered"]),
    _unheard: frozenset(["schedule.fired", "schedule.executed", "schedule.undelivered", "schedule.silent"]),
    _crowded: frozenset(["buffer.backlog"]),
}
"""What happens, and the topics that tell of it."""


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__.strip("_"))
async def test_it_is_told_as_its_schema_says(kept: Kept, scene: Scene) -> None:
    await scene(StoreDriver(kept.store))
    events = [event for line in kept.lines() for event in events_of(line)]
    assert {one.topic for one in events} >= SCENES[scene]
    assert amiss(kept) == []
    assert [one.topic for one in events if one.topic not in CORE] == []


async def test_a_line_that_is_not_what_its_schema_says_is_found() -> None:
    store = InMemoryOperations()
    for payload in ('{"batch": 1}', '{"batch": "one"}'):
        await store.apply(Tell("batch.dead", payload, 0))
    assert amiss(Kept(store, Path())) == ["batch.dead: batch is 'one' and holds id of a batch"]


def test_every_topic_is_met_by_a_test() -> None:
    shown = frozenset().union(*SCENES.values())
    files = (*_TESTS.rglob("test_*.py"), *Path(contracts.__file__).parent.glob("*.py"))
    tested = [path.read_text("utf-8") for path in files if path != Path(__file__)]

    def met(topic: str) -> bool:
        """Whether a test names it: as a whole, or its last word beside what its family begins with."""
        family, _, what = topic.partition(".")
        return any(f'"{topic}"' in text or (f'"{family}.' in text and f'"{what}"' in text) for text in tested)

    assert [topic for topic in CORE if topic not in shown and not met(topic)] == []


async def test_what_comes_together_costs_one_line(kept: Kept) -> None:
    road = StoreDriver(kept.store)
    for room in ("a", "b", "c"):
        await road.queue(said(room=room))
    await kept.store.apply(ClaimBatches("one", 3, (91, 92, 93), 0, 9))
    [line] = [one for one in kept.lines() if one.topic == "turn.started"]
    assert [event.correlation_id for event in events_of(line)] == ["91", "92", "93"]


async def test_what_leaves_a_context_is_marked_for_collection_and_told(kept: Kept) -> None:
    road, store = StoreDriver(kept.store), kept.store
    for text in ("one", "two"):
        await road.settle(said(text))
    assert await store.apply(Summarise(lane_of(), 0, 1, "one was said", Made.MODEL, "test/model", 5))
    assert [session[3:] for session in kept.sessions()] == [(4, "compaction")]
    assert await store.apply(CutContext(lane_of(), 1, 2, CutReason.GUARD, 6))
    assert await store.apply(SummaryFailed(lane_of(), 2, "no model", 99, 7))
    assert await store.apply(CutContext(lane_of(), 2, 4, CutReason.RESET, 8))
    assert [session[3:] for session in kept.sessions()] == [(4, "compaction")]
    lane = list(lane_of())
    assert [told for told in kept.journal() if told[0].startswith("lane.")] == [
        ("lane.compacted", "", {"lane": lane, "version": 1, "first": 1, "last": 1, "messages": 1, "how": "model"}, 5),
        ("lane.compacted", "", {"lane": lane, "version": 2, "first": 2, "last": 2, "messages": 1, "how": "guard"}, 6),
        ("lane.summary_failed", "", {"lane": lane, "version": 2, "attempts": 1, "error": "no model"}, 7),
        ("lane.reset", "", {"lane": lane, "version": 3, "first": 3, "last": 4, "messages": 2}, 8),
    ]
