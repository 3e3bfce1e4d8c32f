"""Memory proxies when something is slow, breaks or leaves: clients are answered, and half an answer is not recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from tests.unit.openai_cast import ProxySite, proxy_site, token
from tests.waits import HANG_S

from keepsaid.app.instance import Outside
from keepsaid.app.upstreams import proxy_memory_of
from keepsaid.domain.chat_call import ChatTurn
from keepsaid.domain.commits import Received
from keepsaid.domain.memory import Injection, VectorSpace
from keepsaid.domain.message import Inbound
from keepsaid.domain.turn import ClaimedBatch, Recent
from keepsaid.errors import EmbedderError, StoreBroken
from keepsaid.services.context import ContextService
from keepsaid.services.proxy import ProxyContext, ProxyMemory
from keepsaid.testing.model_script import Cut, Garble, Refuse, Say, Script, Stall

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEVER_S = 3_600.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ProxySite]:
    async with proxy_site(tmp_path_factory.mktemp("home")) as running:
        yield running


def call(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "memory/both", "messages": [{"role": "user", "content": text}], **more}


def in_conversation(name: str) -> dict[str, str]:
    return {"X-Keepsaid-Conversation": name}


async def until_recorded(one: ProxySite, conversation: str, count: int) -> list[tuple[str, str]]:
    """What is recorded of a conversation, once it has that number of messages."""
    async with asyncio.timeout(HANG_S):
        while len(found := await one.recorded(conversation)) < count:
            pass
    return found


async def test_first_words_arrive_while_the_model_still_writes(one: ProxySite) -> None:
    one.provider.script = Script(Say("Hello there, all of you.", chunk=5, rest_after_s=NEVER_S))
    async with one.client() as client:
        stream = await client.chat.completions.create(extra_headers=in_conversation("early"), **call("Hi", stream=True))
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        assert chunk.choices[0].delta.content == "Hello"
        await stream.close()
    await one.provider.wait_idle()


async def test_stream_passes_through_byte_for_byte(one: ProxySite) -> None:
    raw = (
        ': comment\r\ndata:{"choices":[{"index":0,"delta":{"content":"Grüße,\\u0020"}}],"x":1}\r\n\r\n'
        'event: odd\ndata: {"choices":[{"index":1,"delta":{"content":"not me"}}]}\n\n'
        'data: {"choices":[{"index":0,"delta":{"content":"Ann"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    one.provider.script = Script(Garble(raw))
    answer = await one.post(call("Greet me", stream=True), headers=in_conversation("raw"))
    assert answer.content == raw.encode()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert await one.recorded("raw") == [("user", "Greet me"), ("assistant", "Grüße, Ann")]


async def test_client_that_leaves_drops_the_call_and_its_words_are_kept(one: ProxySite) -> None:
    one.provider.script = Script(Say("A long story begins here", chunk=6, rest_after_s=NEVER_S), Say("The end."))
    async with one.client() as client:
        stream = await client.chat.completions.create(
            extra_headers=in_conversation("left"), **call("Tell a story", stream=True)
        )
        async for _ in stream:
            break
        await stream.close()
    await one.provider.wait_idle()
    assert await until_recorded(one, "left", 1) == [("user", "Tell a story")]
    # the same call again is the same message, now with its answer
    assert (await one.post(call("Tell a story", stream=True), headers=in_conversation("left"))).status_code == 200
    assert await one.recorded("left") == [("user", "Tell a story"), ("assistant", "The end.")]


async def test_stream_that_the_provider_breaks_off_is_an_error_and_no_answer(one: ProxySite) -> None:
    one.provider.script = Script(Cut("This will never be whole", after_chars=9), Say("Whole."))
    async with one.client() as client:
        stream = await client.chat.completions.create(
            extra_headers=in_conversation("cut"), **call("Write", stream=True)
        )
        with pytest.raises(openai.APIError, match="provider"):
            await anext(chunk async for chunk in stream if chunk.choices and chunk.choices[0].finish_reason)
        assert await until_recorded(one, "cut", 1) == [("user", "Write")]
        await client.chat.completions.create(extra_headers=in_conversation("cut"), **call("Write"))
    assert await one.recorded("cut") == [("user", "Write"), ("assistant", "Whole.")]


async def test_retries_of_the_library_are_recorded_once(one: ProxySite) -> None:
    said = "Third time lucky."
    one.provider.script = Script(Refuse(503, retry_after=0.001), Cut(said, after_chars=3), Say(said))
    async with one.client(max_retries=2) as client:
        made = await client.chat.completions.create(extra_headers=in_conversation("tries"), **call("Try"))
    assert made.choices[0].message.content == said
    assert await one.recorded("tries") == [("user", "Try"), ("assistant", said)]


async def test_whole_answer_that_breaks_off_is_refused_and_not_recorded(one: ProxySite) -> None:
    one.provider.script = Script(Cut("This will never be whole", after_chars=9))
    answer = await one.post(call("Write"), headers=in_conversation("half"))
    assert answer.status_code == 503
    assert await one.recorded("half") == []


@pytest.mark.parametrize("body", ["no json", '{"choices": []}', '{"choices": [{"message": 7}]}', "[" * 5_000, ""])
async def test_answer_that_cannot_be_read_passes_through_unrecorded(one: ProxySite, body: str) -> None:
    one.provider.script = Script(Garble(body))
    answer = await one.post(call("Odd"), headers=in_conversation("odd"))
    assert (answer.status_code, answer.text) == (200, body)
    assert await one.recorded("odd") == []


async def test_stopped_client_of_a_whole_answer_ends_the_call(one: ProxySite) -> None:
    one.provider.script = Script(Stall("never"))
    async with one.client(timeout=0.2) as client:
        with pytest.raises(openai.APITimeoutError):
            await client.chat.completions.create(extra_headers=in_conversation("late"), **call("Late"))
    await one.provider.wait_idle()
    assert await one.recorded("late") == []


class StuckEmbedder:
    """An embedder that never answers a query."""

    async def space(self) -> VectorSpace:
        return VectorSpace("stuck", "1", 4, b"stuck")

    async def query(self, text: str) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        raise EmbedderError("stuck")


async def test_slow_embedder_does_not_hold_the_call_and_is_named(tmp_path: Path) -> None:
    async with proxy_site(tmp_path, outside=Outside(embedder=StuckEmbedder())) as slow:
        await slow.save("The kayak is in the blue shed")
        answer = await slow.post(call("Where is the kayak?"))
        assert answer.status_code == 200
        assert answer.headers["x-keepsaid-degraded"]


class TroubledReminder:
    """Memory that does what a test says, in place of recall."""

    def __init__(self, happens: Callable[[], Awaitable[Injection]]) -> None:
        self._happens = happens

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        return await self._happens()


async def never() -> Injection:
    await asyncio.Event().wait()
    return Injection()


async def broken() -> Injection:
    raise StoreBroken("the disk failed")


TURN = ChatTurn("Where is the kayak?", 0, "u", "a", "o")


@pytest.mark.parametrize(("happens", "told"), [(never, "longer than 150 ms"), (broken, "could not be read")])
async def test_memory_that_hangs_or_fails_leaves_the_call_without(
    one: ProxySite, happens: Callable[[], Awaitable[Injection]], told: str
) -> None:
    here = one.here.instance
    context = ContextService(here.operations, here.clock, lambda _: TroubledReminder(happens), lambda: None)
    usual = proxy_memory_of(here)
    memory = ProxyMemory(context, usual._record, usual._remember, here.memories, 150)
    who = here.config.principals()[token("ann")]
    found = await memory.recall(who, "room", TURN, 1_000)
    assert (found.text, found.memories) == ("", 0)
    assert told in found.degraded


async def test_record_that_fails_raises_nothing_and_settles(one: ProxySite) -> None:
    async def refuse(said: Sequence[Inbound]) -> tuple[Received, ...]:
        raise StoreBroken("the disk failed")

    async def remember(conversation: str) -> None:
        raise TimeoutError

    here = one.here.instance
    who = here.config.principals()[token("ann")]
    contexts = here.services.assistant.contexts
    await ProxyMemory(contexts, refuse, remember, here.memories, 150).record(who, "room", TURN, "in the shed")
    kept = ProxyMemory(contexts, here.record, remember, here.memories, 150)
    await kept.record(who, "settled", TURN, "in the shed")
    await kept.settle()
    assert await one.recorded("settled") == [("user", "Where is the kayak?"), ("assistant", "in the shed")]
    assert await kept.recall(who, "settled", ChatTurn(" ", 0, "u", "a", "o"), 1_000) == ProxyContext()
