"""Events: told to whoever subscribed, over failures and restarts; read over HTTP and by command."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import site
from tests.waits import HANG_S

from keepsaid import InputError, Keepsaid, Message
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.commits import Commit, Tell
from keepsaid.domain.event import Event, SettleDeliveries, several, wants
from keepsaid.domain.ids import PREFIXES
from keepsaid.engine.subscriptions import DeliveryTerms, Subscriber
from keepsaid.errors import StoreFull
from keepsaid.events.catalog import CORE, checked, topics_of
from keepsaid.events.dispatcher import EventNotifier, dispatch
from keepsaid.events.schema import FieldType
from keepsaid.interfaces.cli.program import run
from keepsaid.testing.clock import CountingIds, VirtualClock

SETTINGS: dict[str, Any] = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}
TERMS = DeliveryTerms(limit_ms=1_000, attempts_max=3, again_ms=100)


class Scene:
    """A journal in memory, and one who is told."""

    def __init__(self) -> None:
        self.store = InMemoryOperations()
        self.clock = VirtualClock()
        self.heard: list[str] = []
        self.failing: dict[str, int] = {}
        self.bell = EventNotifier()
        self.subscriber = Subscriber("one", self._hear, self.store, self.clock, CountingIds(), TERMS)

    async def _hear(self, event: Event) -> None:
        self.heard.append(event.topic)
        if self.failing.get(event.topic, 0):
            self.failing[event.topic] -= 1
            raise ValueError("no")

    async def happen(self, *topics: str, about: str = "") -> None:
        """Let things happen, and be on their way."""
        for topic in topics:
            await self.store.apply(Tell(topic, "{}", self.clock.now_ms(), about))
        while await dispatch(self.store, self.clock, self.bell) == 0:
            pass

    async def told(self) -> int | None:
        """Tell all that is due; returns when more is."""
        while (due := await self.subscriber.work()) == 0:
            pass
        return due


@pytest.fixture
async def scene() -> Scene:
    made = Scene()
    await made.subscriber.subscribe(("a.*",), from_start=False)
    return made


async def test_all_is_told_in_order_however_much_there_is(scene: Scene) -> None:
    await scene.happen(*["a.one", "a.two", "b.one"] * 100)
    assert await scene.told() is None
    assert scene.heard == ["a.one", "a.two"] * 100


async def test_what_fails_comes_again_later_and_later_and_is_given_up(scene: Scene) -> None:
    scene.failing["a.one"] = 3
    await scene.happen("a.one", about="x")
    waits = []
    while (due := await scene.told()) is not None:
        waits.append(due - scene.clock.due_ms())
        await scene.clock.advance(int(waits[-1]))
    assert len(scene.heard) == 3
    assert [75 <= waits[0] <= 125, 150 <= waits[1] <= 250] == [True, True]
    [dead] = await scene.store.journal.deliveries(("dead",), "one", 10)
    assert (dead.attempts, dead.error) == (3, "ValueError: no")


async def test_what_fails_holds_up_what_is_about_the_same_and_nothing_else(scene: Scene) -> None:
    scene.failing["a.one"] = 1
    await scene.happen("a.one", "a.two", about="x")
    await scene.happen("a.three", about="y")
    due = await scene.told()
    assert scene.heard == ["a.one", "a.three"]
    assert due is not None
    await scene.clock.advance(1_000)
    assert await scene.told() is None
    assert scene.heard == ["a.one", "a.three", "a.one", "a.two"]


async def test_one_that_takes_too_long_is_broken_off() -> None:
    scene = Scene()

    async def hang(_event: Event) -> None:
        await asyncio.Event().wait()

    terms = DeliveryTerms(limit_ms=1, attempts_max=1)
    slow = Subscriber("slow", hang, scene.store, scene.clock, CountingIds(), terms)
    await slow.subscribe(("a.*",), from_start=False)
    await scene.happen("a.one")
    await slow.work()
    [dead] = await scene.store.journal.deliveries(("dead",), "slow", 10)
    assert dead.error == "it took longer than 0.001 s"


async def test_who_is_stopped_leaves_what_was_not_tried_uncharged() -> None:
    scene = Scene()
    heard: list[str] = []
    stopping: list[asyncio.Future[None]] = []

    async def hear(event: Event) -> None:
        heard.append(event.topic)
        if len(heard) == 2:
            stopping.append(asyncio.ensure_future(subscriber.stop()))
            await asyncio.sleep(0)

    subscriber = Subscriber("two", hear, scene.store, scene.clock, CountingIds())
    await subscriber.subscribe(("a.*",), from_start=False)
    await scene.happen("a.one")
    assert await subscriber.work() == 0  # all went well, so that more are taken at once from now on
    await scene.happen("a.two", "a.three")
    await subscriber.work()
    await asyncio.gather(*stopping)
    [waiting] = await scene.store.journal.deliveries(("pending", "processing"), "two", 10)
    assert (heard, waiting.topic) == (["a.one", "a.two"], "a.three")
    assert (waiting.state, waiting.attempts) == ("pending", 0)


async def test_what_was_taken_with_a_slow_one_is_put_back_untried() -> None:
    scene = Scene()
    heard: list[str] = []

    async def hear(event: Event) -> None:
        heard.append(event.topic)
        if event.topic == "a.slow":
            await scene.clock.advance(2_500)

    subscriber = Subscriber("one", hear, scene.store, scene.clock, CountingIds())
    await subscriber.subscribe(("a.*",), from_start=False)
    for _ in range(3):  # all goes well, so that more are taken at once each time
        await scene.happen(*["a.quick"] * 4)
        while await subscriber.work() == 0:
            pass
    await scene.happen("a.slow", *["a.next"] * 3)
    assert await subscriber.work() == 0
    waiting = await scene.store.journal.deliveries(("pending", "processing"), "one", 10)
    assert heard[12:] == ["a.slow"]
    assert [(one.topic, one.state, one.attempts) for one in waiting] == [("a.next", "pending", 0)] * 3


class Full(InMemoryOperations):
    """A store whose disk is full for some time when something is to be settled."""

    refused = 0

    async def apply(self, commit: Commit[Any]) -> Any:
        if isinstance(commit, SettleDeliveries) and self.refused:
            self.refused -= 1
            raise StoreFull("no space left")
        return await super().apply(commit)


async def test_what_was_told_while_the_disk_was_full_is_not_told_again_and_nothing_spins() -> None:
    scene = Scene()
    full = Full(scene.store.database)
    heard: list[str] = []

    async def hear(event: Event) -> None:
        heard.append(event.topic)

    subscriber = Subscriber("one", hear, full, scene.clock, CountingIds())
    await subscriber.subscribe(("a.*",), from_start=False)
    await scene.happen("a.one", "a.two", about="x")
    full.refused = 2
    for _ in range(2):
        with pytest.raises(StoreFull):
            await subscriber.work()
    other = Subscriber("one", hear, full, scene.clock, CountingIds(90))
    assert await other.work() is None  # the next is due, and behind one that is held
    while await subscriber.work() == 0:
        pass
    assert heard == ["a.one", "a.two"]


async def test_the_library_is_told_and_tells(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    both = asyncio.Event()

    async def hear(event: dict[str, Any]) -> None:
        heard.append(event)
        if len(heard) == 2:
            both.set()

    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.events.subscribe("me", ("message.received", "deploy.*"), hear)
        receipt = await ks.inbox.put(Message("hello", "ann", "room"))
        await ks.events.emit("deploy.finished", {"build": 7}, about="build-7")
        async with asyncio.timeout(HANG_S):
            await both.wait()
        assert [one["type"] for one in heard] == ["message.received", "deploy.finished"]
        assert (heard[0]["subject"], heard[0]["data"]["message"]) == (receipt.id, receipt.id)
        assert heard[1]["data"] == {"build": 7}
        found = await ks.events.wait_for("deploy.finished", "build-7", 5)
        assert found == heard[1]
        assert await ks.events.wait_for("deploy.finished", "build-7", 0.0, after=found["id"]) is None
        waiting = asyncio.ensure_future(ks.events.wait_for("deploy.finished", "build-8", 30))
        await ks.events.emit("deploy.finished", {}, about="build-8")
        assert await waiting is not None


async def test_what_a_user_said_goes_into_the_buffer_once_and_as_nobody_else(tmp_path: Path) -> None:
    settings = {**SETTINGS, "owner": [{"channel": "terminal", "sender": "me"}]}
    async with Keepsaid.open(tmp_path, settings=settings, answering=False) as ks:
        for _ in range(2):
            await ks.events.emit("user.message", {"text": "hello", "user_id": "me"}, about="delivery-1")
        async for batch in ks.inbox.batches("me"):
            [message] = batch.messages
            break
        assert (message.text, message.sender, message.channel) == ("hello", "me", "library")
        for payload in (
            {"text": "x"},
            {"text": "x", "user_id": ""},
            {"text": "x", "user_id": "a", "channel_id": "terminal"},
        ):
            with pytest.raises(InputError, match=r"user\.message"):
                await ks.events.emit("user.message", payload)
    with pytest.raises(InputError, match="not told"):
        checked("user.message", {"text": "hello"})


async def test_after_a_restart_it_hears_what_it_missed(tmp_path: Path) -> None:
    heard: list[str] = []
    done = asyncio.Event()

    async def hear(event: dict[str, Any]) -> None:
        heard.append(event["type"])
        done.set()

    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.events.subscribe("me", "deploy.*", hear)
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.events.emit("deploy.missed", {})
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.events.subscribe("me", "deploy.*", hear)
        async with asyncio.timeout(HANG_S):
            await done.wait()
        assert heard == ["deploy.missed"]
        assert await ks.events.unsubscribe("me")
        assert not await ks.events.unsubscribe("me")


@pytest.mark.parametrize("topic", ["turn.committed", "memory.mine", "alone", "UPPER.case", "a..b", "a." + "b" * 300])
async def test_topics_that_are_none_or_the_runtimes_own_are_refused(topic: str) -> None:
    with pytest.raises(InputError, match="topic"):
        checked(topic, {})


async def test_payloads_that_cannot_be_kept_are_refused() -> None:
    for payload in ({"a": "x" * 70_000}, {"a": float("nan")}, {"a": object()}):
        with pytest.raises(InputError, match=r"a\.b"):
            checked("a.b", payload)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "topic", "is_wanted"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("*.b", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.*", "a", False),
        ("a.b", "a.c", False),
    ],
)
def test_a_star_is_one_segment(pattern: str, topic: str, is_wanted: bool) -> None:
    assert wants([pattern], topic) is is_wanted


async def test_http_lists_and_streams_what_happened(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        put = (await running.say("hello")).json()
        await running.settled(put["id"])
        refused = await running.client.get("/v1/events")
        assert refused.status_code == 401
        found = (await running.client.get("/v1/events?topics=message.*,turn.*", headers=running.owner)).json()
        assert [one["type"] for one in found] == ["message.received", "turn.started", "turn.committed"]
        assert found[0]["data"]["message"] == put["id"]
        assert {"specversion", "id", "source", "time"} <= found[0].keys()
        every = await running.instance.telling.journal.latest(1_000)
        assert [wrong for one in every for wrong in CORE[one.topic].amiss(one.payload)] == []
        more = await running.client.get(f"/v1/events?after={found[0]['id']}&topics=*.*", headers=running.owner)
        assert found[1] in more.json()
        for query, status in (("topics=nonsense", 422), ("after=x", 400)):
            assert (await running.client.get(f"/v1/events?{query}", headers=running.owner)).status_code == status
        headers = {**running.owner, "Accept": "text/event-stream", "Last-Event-ID": found[0]["id"]}
        async with running.client.stream("GET", "/v1/events", headers=headers) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("event: turn.committed"):
                    break


async def test_commands_show_it_and_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path), "--json"]

    def said(*arguments: str) -> dict[str, Any]:
        code = run([*home, "events", *arguments])
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return {**told, "code": code}

    assert await asyncio.to_thread(said, "tail") == {"schema_version": 1, "events": [], "code": 0}

    called = asyncio.Event()

    async def never(_event: Event) -> None:
        called.set()
        raise ValueError("no")

    async with opened(Home.at(tmp_path), Config()) as instance:
        await instance.start(answering=False)
        await instance.telling.subscribe("critic", ("deploy.*",), never, terms=DeliveryTerms(attempts_max=1))
        await instance.telling.emit("deploy.finished", {"build": 7})
        async with asyncio.timeout(HANG_S):
            await called.wait()
    [event] = (await asyncio.to_thread(said, "tail", "--topic", "deploy.*"))["events"]
    assert event["data"] == {"build": 7}
    [subscriber] = (await asyncio.to_thread(said, "ls"))["subscribers"]
    assert (subscriber["name"], subscriber["dead"]) == ("critic", 1)
    [dead] = (await asyncio.to_thread(said, "dead"))["deliveries"]
    assert dead["error"] == "ValueError: no"
    assert (await asyncio.to_thread(said, "requeue", dead["id"]))["code"] == 0
    assert (await asyncio.to_thread(said, "requeue", dead["id"]))["code"] != 0
    assert (await asyncio.to_thread(said, "unsubscribe", "critic"))["code"] == 0
    assert (await asyncio.to_thread(said, "ls"))["subscribers"] == []
    assert set((await asyncio.to_thread(said, "topics"))["topics"]) == set(CORE)


def test_a_line_of_several_tells_each() -> None:
    told = several([("1", {"message": 1}), ("2", {"message": 2})])
    assert json.loads(told) == [["1", {"message": 1}], ["2", {"message": 2}]]


def test_every_topic_has_a_schema_that_outsiders_can_read() -> None:
    for topic, schema in CORE.items():
        shape = schema.json_schema()
        assert set(shape["required"]) <= set(shape["properties"]) == set(schema.fields), topic
        assert schema.when.endswith("."), topic
        assert all(
            one.of in PREFIXES for one in schema.fields.values() if one.holds in (FieldType.ID, FieldType.IDS)
        ), topic


@pytest.mark.parametrize(
    ("payload", "amiss"),
    [
        ({"turn": 1, "batch": 2, "replied": True}, []),
        ({"turn": 1, "batch": 2, "replied": True, "steered": [3]}, []),
        ({"turn": True, "batch": 2, "replied": True}, ["turn is True and holds id of a turn"]),
        ({"turn": 1, "replied": "yes", "text": "hi"}, ["text is not a field", "batch is missing", "replied is 'yes'"]),
    ],
)
def test_a_schema_says_what_is_amiss(payload: dict[str, Any], amiss: list[str]) -> None:
    said = list(CORE["turn.committed"].amiss(payload))
    assert len(said) == len(amiss)
    assert all(one.startswith(start) for one, start in zip(said, amiss, strict=True))


async def test_the_old_names_of_topics_are_known() -> None:
    assert topics_of(("user_message", "agent_response", "memory.*")) == (
        "message.received",
        "turn.committed",
        "memory.*",
    )
