"""The library: values in, values out, on a home of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.library_cast import Change, outside
from tests.waits import HANG_S

import keepsaid
from keepsaid import (
    Batch,
    ConfigError,
    Episode,
    HomeBusy,
    InputError,
    Keepsaid,
    KeyConflict,
    Message,
    StoreError,
    TooLarge,
    UnknownChannel,
)

SETTINGS: dict[str, Any] = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}
HELLO = Message("where is the lantern?", "ann", "room")
LANTERN = Episode("The brass lantern hangs in the boathouse.", "Ann", "harbour", 1_000)


@pytest.fixture(autouse=True)
def no_settings_of_whoever_runs_this(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("KEEPSAID_")]:
        monkeypatch.delenv(name)


@pytest.fixture
async def ks(tmp_path: Path) -> AsyncIterator[Keepsaid]:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def sql(tmp_path: Path) -> Change:
    return outside(tmp_path)


async def next_batch(ks: Keepsaid) -> Batch:
    """The next batch, still leased: whoever gets it must settle it at once."""
    async with asyncio.timeout(HANG_S):
        return await anext(ks.inbox.batches("test"))


# The inbox


async def test_batches_end_once_nothing_was_ready_for_a_while(ks: Keepsaid) -> None:
    message = Message("hello", "ann", "room", external_id="1")
    assert [batch async for batch in ks.inbox.batches("test", idle_s=0.01)] == []
    assert not (await ks.inbox.put(message)).duplicate
    async for batch in ks.inbox.batches("test", idle_s=HANG_S):
        await batch.done()
        break
    assert (await ks.inbox.put(message)).duplicate
    assert [batch async for batch in ks.inbox.batches("test", idle_s=0.01)] == [], "a duplicate is no work"


async def test_a_message_is_put_once(ks: Keepsaid, sql: Change) -> None:
    message = Message("hello", "ann", "room", external_id="m-1", provider_id="p-1", direct=True)
    first, again = await ks.inbox.put(message), await ks.inbox.put(message)
    assert (first.conversation, first.lane, first.number, first.duplicate) == ("room", "root:room", 1, False)
    assert (again.id, again.number, again.duplicate) == (first.id, 1, True)
    assert sql("SELECT text, external_id, provider_id, direct, trust FROM message") == [
        ("hello", "m-1", "p-1", 1, "known")
    ]


async def test_the_same_id_with_other_content_is_a_conflict(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(Message("hello", "ann", "room", external_id="m-1"))
    for other in (
        Message("goodbye", "ann", "room", external_id="m-1"),
        Message("hello", "ben", "room", "library", "m-1"),
    ):
        with pytest.raises(KeyConflict, match="'m-1'"):
            await ks.inbox.put(other)
    assert sql("SELECT text FROM message") == [("hello",)]


async def test_a_reply_joins_the_lane_of_its_target(ks: Keepsaid) -> None:
    first = await ks.inbox.put(Message("hello", "ann", "room", provider_id="p-1", reply_to="p-0"))
    second = await ks.inbox.put(Message("and?", "ann", "room", reply_to="p-1"))
    assert (first.lane, second.lane, second.number) == ("reply:room:p-0", "reply:room:p-0", 2)


@pytest.mark.parametrize(
    ("message", "error", "what"),
    [
        (Message("", "ann", "room"), InputError, "empty"),
        (Message(" \n", "ann", "room"), InputError, "empty"),
        (Message("hello", "", "room"), InputError, "1 to 1024"),
        (Message("hello", "ann", "r" * 1_025), InputError, "1 to 1024"),
        (Message("hello", "ann", "room", "libary"), UnknownChannel, "no channel 'libary'"),
        (Message("hello", "ann", "room", "\ud800"), UnknownChannel, "no channel"),
        (Message("x" * 1_000_001, "ann", "room"), TooLarge, "1,000,000 are allowed"),
    ],
)
async def test_what_cannot_be_taken_is_refused(
    ks: Keepsaid, sql: Change, message: Message, error: type[InputError], what: str
) -> None:
    with pytest.raises(error, match=what) as caught:
        await ks.inbox.put(message)
    assert caught.value.safe.startswith("Nothing was stored")
    assert sql("SELECT * FROM message") == []


async def test_text_that_cannot_be_stored_is_made_fit(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(Message("a\0b\ud800", "s\ud800", "c\0", external_id="\ud800", reply_to="\0"))
    batch = await next_batch(ks)
    (message,) = batch.messages
    assert (message.text, message.sender, message.conversation) == ("a\ufffdb\ufffd", "s\ufffd", "c\ufffd")
    await batch.done("\ud800 is no \0 answer")
    assert sql("SELECT text FROM reply") == [("\ufffd is no \ufffd answer",)]


async def test_a_batch_is_settled_with_its_reply(ks: Keepsaid, sql: Change) -> None:
    for n in (1, 2, 3):
        await ks.inbox.put(Message(f"part {n}", "ann", "room", external_id=f"m-{n}", provider_id=f"p-{n}"))
    replies = 0
    async with aclosing(ks.inbox.batches("the test")) as batches:
        async with asyncio.timeout(HANG_S):
            async for batch in batches:
                assert (batch.conversation, batch.lane) == ("room", "root:room")
                await batch.done(f"answer to {batch.messages[-1].text}")
                replies += 1
                if batch.messages[-1].external_id == "m-3":
                    break
    assert sql("SELECT count(*), count(nullif(state, 'sent')) FROM reply") == [(replies, 0)]
    assert sql("SELECT text, reply_to FROM reply ORDER BY id DESC LIMIT 1") == [("answer to part 3", "p-3")]
    assert sql("SELECT DISTINCT state FROM batch") == [("done",)]
    assert sql("SELECT DISTINCT model FROM turn") == [("consumer:the test",)]


async def test_a_batch_may_be_done_without_a_word(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(HELLO)
    await (await next_batch(ks)).done()
    assert sql("SELECT state, (SELECT count(*) FROM reply) FROM batch") == [("done", 0)]


async def test_a_batch_is_settled_once(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(HELLO)
    batch = await next_batch(ks)
    await batch.done("yes")
    await batch.done("no")
    assert sql("SELECT text FROM reply") == [("yes",)], "the first stands"


async def test_the_third_failure_is_the_last(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(HELLO)
    states = []
    async with aclosing(ks.inbox.batches("test")) as batches:
        async with asyncio.timeout(HANG_S):
            async for batch in batches:
                states.append(await batch.fail("it does \ud800 not work"))
                if states[-1] == "dead":
                    break
                # The time of waiting passes.
                sql("UPDATE batch SET ready_at = 0")
                sql("UPDATE ready SET ready_at = 0")
    assert states == ["queued", "queued", "dead"]
    assert sql("SELECT attempts, error FROM batch") == [(3, "it does \ufffd not work")]
    ((text, notice),) = sql("SELECT text, notice FROM reply")
    assert notice == 1
    assert "it does \ufffd not work" in text


async def test_a_batch_left_unsettled_comes_again_uncharged(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(HELLO)
    turns = []
    async with aclosing(ks.inbox.batches("test")) as batches:
        async with asyncio.timeout(HANG_S):
            async for batch in batches:
                turns.append(batch.turn)
                if len(turns) == 3:
                    await batch.done("at last")
                    break
    assert len(set(turns)) == 1
    assert sql("SELECT state, attempts FROM batch") == [("done", 0)]


async def test_a_consumer_that_dies_gives_its_batch_back(ks: Keepsaid, sql: Change) -> None:
    await ks.inbox.put(HELLO)
    with pytest.raises(ZeroDivisionError):
        await _dying(ks)
    assert sql("SELECT state, attempts FROM batch") == [("queued", 0)]
    await (await next_batch(ks)).done()


async def _dying(ks: Keepsaid) -> None:
    async with aclosing(ks.inbox.batches("first")) as batches:
        async for _ in batches:
            raise ZeroDivisionError


async def test_a_waiting_consumer_is_woken_by_a_message(ks: Keepsaid) -> None:
    waiting = asyncio.create_task(next_batch(ks))
    await ks.inbox.put(HELLO)
    batch = await waiting
    assert [message.text for message in batch.messages] == ["where is the lantern?"]


# A home


def databases(home: Path) -> list[str]:
    """The files of a closed home; whatever stands in a log has been moved into them."""
    assert not any(log.stat().st_size for log in (home / "data").glob("*-wal"))
    return sorted(path.name for path in (home / "data").glob("*.db"))


async def test_a_home_has_one_runtime(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as first:
        with pytest.raises(HomeBusy, match=f"process {os.getpid()}") as caught:
            async with Keepsaid.open(tmp_path, settings=SETTINGS):
                pytest.fail("it opened")
        assert caught.value.safe == "The other process keeps working; nothing was changed."
        await first.inbox.put(HELLO)
    async with Keepsaid.open(str(tmp_path), settings=SETTINGS) as again:
        assert (await again.inbox.put(HELLO)).number == 2


async def test_what_was_put_is_there_after_reopening(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as first:
        put = await first.inbox.put(Message("hello", "ann", "room", external_id="m-1"))
        async with asyncio.timeout(HANG_S):
            async for _ in first.inbox.batches("first"):
                break
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as again:
        known = await again.inbox.put(Message("hello", "ann", "room", external_id="m-1"))
        assert (known.id, known.duplicate) == (put.id, True)
        batch = await next_batch(again)
        assert [message.text for message in batch.messages] == ["hello"]
        await batch.done()


async def test_the_home_is_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_HOME", str(tmp_path / "there"))
    async with Keepsaid.open(settings=SETTINGS) as ks:
        await ks.inbox.put(HELLO)
    assert databases(tmp_path / "there") == ["buffer.db", "memory.db"]


async def test_a_closed_home_takes_nothing(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        inbox = ks.inbox
    with pytest.raises(StoreError, match="closed"):
        await inbox.put(HELLO)


async def test_settings_are_checked_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"buffer\.window_ms: expected an integer, got .*set by the program"):
        async with Keepsaid.open(tmp_path / "home", settings={"buffer": {"window_ms": "soon"}}):
            pytest.fail("it opened")
    with pytest.raises(ConfigError):
        async with Keepsaid.open(tmp_path / "home", settings={"models": {"chat": "nobody/nothing"}}):
            pytest.fail("it opened")
    async with Keepsaid.open(tmp_path / "home", settings=SETTINGS):
        pass


async def test_settings_replace_sections_of_the_file(tmp_path: Path) -> None:
    config = tmp_path / "config" / "config.yaml"
    config.parent.mkdir()
    config.write_text("buffer: {text_chars_max: 100}\nroutes: {default: drop}\n")
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.inbox.put(Message("x" * 101, "ann", "room"))
    async with Keepsaid.open(tmp_path, settings={"models": {"chat": "none"}}) as ks:
        with pytest.raises(TooLarge, match="100 are allowed"):
            await ks.inbox.put(Message("x" * 101, "ann", "room"))


async def test_with_answering_the_model_takes_the_batches(tmp_path: Path, sql: Change) -> None:
    async with Keepsaid.open(tmp_path, answering=True, settings=SETTINGS) as ks:
        await ks.inbox.put(HELLO)
        async with asyncio.timeout(HANG_S):
            while not (found := await asyncio.to_thread(sql, "SELECT text FROM reply")):
                pass
    ((text,),) = found
    assert text.startswith("No model is set")


# Why


async def test_a_turn_tells_why(ks: Keepsaid) -> None:
    await ks.inbox.put(HELLO)
    batch = await next_batch(ks)
    await batch.done("In the boathouse.")
    told = await ks.why(batch.turn)
    assert (told["id"], told["state"], told["lane"]) == (
        batch.turn,
        "committed",
        {"conversation": "room", "key": "root:room"},
    )
    assert [message["text"] for message in told["messages"]] == ["where is the lantern?"]
    assert [reply["text"] for reply in told["replies"]] == ["In the boathouse."]
    assert (told["batch"]["verdict"], told["batch"]["rule"], told["batch"]["state"]) == ("forward", "default", "done")


@pytest.mark.parametrize("turn", ["", "trn_0000000000000", "nonsense", "msg_0000000000001", "\ud800"])
async def test_an_unknown_turn_is_told(ks: Keepsaid, turn: str) -> None:
    with pytest.raises(InputError, match="there is no turn") as caught:
        await ks.why(turn)
    assert caught.value.hint == "keepsaid why"


# One file


async def test_one_file_holds_both_stores(tmp_path: Path) -> None:
    settings = {**SETTINGS, "buffer": {"window_ms": 0, "path": "one.db"}, "memory": {"path": "one.db"}}
    async with Keepsaid.open(tmp_path, settings=settings) as ks:
        await asyncio.gather(ks.inbox.put(HELLO), ks.memory.record([LANTERN]))
        batch = await next_batch(ks)
        await batch.done("In the boathouse.")
    assert databases(tmp_path) == ["one.db"]
    async with Keepsaid.open(tmp_path, settings=settings) as ks:
        assert (await ks.why(batch.turn))["state"] == "committed"
        assert "harbour" in [one.conversation for one in await ks.memory.recall("lantern")]
        assert (await ks.inbox.put(HELLO)).number == 2
        await (await next_batch(ks)).done()


# The names


def test_the_public_names_are_few_and_exact() -> None:
    assert len(keepsaid.__all__) <= 25
    assert sorted(keepsaid.__all__) == list(keepsaid.__all__)
    for name in keepsaid.__all__:
        assert getattr(keepsaid, name) is not None
    offered = {name for name in vars(keepsaid) if not name.startswith("_")}
    submodules = {name for name in offered if f"keepsaid.{name}" in sys.modules}
    assert offered - submodules - {"TYPE_CHECKING", "Any", "annotations"} <= set(keepsaid.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Instance'"):
        _ = keepsaid.Instance


def test_a_start_loads_neither_models_nor_web_stack_nor_what_recall_compares_with() -> None:
    models = ("pydantic_ai", "openai", "anthropic", "starlette", "uvicorn", "typer", "rich", "prompt_toolkit")
    program = (
        "import sys, keepsaid\n"
        f"print([name for name in (*{models}, 'httpx2', 'apsw', 'pydantic', 'asyncio') if name in sys.modules])\n"
        "from keepsaid import Episode, Keepsaid, Message\n"
        f"print([name for name in {models} if name in sys.modules])\n"
        "import keepsaid.app.instance\n"
        f"print([name for name in (*{models}, 'httpx2', 'numpy', 'onnxruntime', 'mcp') if name in sys.modules])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(keepsaid.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env=environment, check=True, timeout=HANG_S
    )
    assert done.stdout.decode().splitlines() == ["[]", "[]", "[]"]
