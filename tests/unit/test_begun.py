"""A call is made ready while its start is written down, and nothing of it leaves the machine before."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest
from tests.unit.deaths import dying_at
from tests.unit.turn_cast import staged
from tests.waits import HANG_S

from keepsaid.adapters.models.choose import OfflineResponder, Punctual
from keepsaid.adapters.models.provider import ProviderChat, build
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.commits import Commit, StepStart
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.prompt import Json, Prompt
from keepsaid.domain.turn import ModelAnswer, ResumableTurn, StepKind, Usage
from keepsaid.errors import LeaseLost, ModelError
from keepsaid.pipeline.turn.run import Begun, OutsideCall, StepLog
from keepsaid.ports.model import Delta, Model, ModelRequest
from keepsaid.testing.clock import VirtualClock, settle
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer

ASKED = Prompt("Be brief.", (), "", "hello")


class Start:
    """The start of a call, on record when the test says so."""

    def __init__(self) -> None:
        self.awaited, self._written = asyncio.Event(), asyncio.Event()

    async def begun(self) -> None:
        self.awaited.set()
        await self._written.wait()

    def written(self) -> None:
        self._written.set()


class Hasty:
    """A model somebody brought along, which looks at nothing but the prompt."""

    name = "hasty"

    def __init__(self) -> None:
        self.asked = 0

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.asked += 1
        delta("at once")
        return ModelAnswer("at once", model=self.name)


def ignore(_: str) -> None:
    """Nobody reads along."""


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_no_provider_hears_of_a_call_before_it_is_on_record(provider: str) -> None:
    async with ModelServer(Script(Say("hi"))) as server:
        chat = ProviderChat(f"{provider}/scripted", lambda: build(provider, "scripted", "key", server.url))
        start = Start()
        call = asyncio.create_task(chat.answer(ModelRequest(ASKED, begun=start.begun), ignore))
        await asyncio.wait_for(start.awaited.wait(), HANG_S)
        await settle()
        assert (server.clients, call.done()) == (0, False)
        start.written()
        await asyncio.wait([call], timeout=HANG_S)
        assert call.done()
        if provider == "openai":
            assert call.result().text == "hi"
        else:
            assert isinstance(call.exception(), ModelError), "the server speaks another protocol"
        await chat.close()


@pytest.mark.parametrize("theirs", [True, False])
async def test_no_other_model_is_asked_before_either(theirs: bool) -> None:
    hasty, told = Hasty(), list[str]()
    model: Model = Punctual(hasty) if theirs else OfflineResponder()
    start = Start()
    call = asyncio.create_task(model.answer(ModelRequest(ASKED, begun=start.begun), told.append))
    await start.awaited.wait()
    await settle()
    assert (hasty.asked, told) == (0, [])
    start.written()
    assert (await call).text == told[0]


async def test_who_has_lost_the_batch_asks_nobody() -> None:
    async with staged(Say("one"), Say("two")) as stage:
        await stage.say()
        (lease,) = await stage.flow.claim(stage.leases, 1)
        claimed = await stage.flow.open(lease)
        await stage.store.apply(VoidLeases("another", stage.clock.now_ms(), "it seemed dead", (900, 901)))
        with pytest.raises(LeaseLost):
            await stage.flow.answer(claimed)
        assert stage.server.requests == []


async def test_killed_before_the_call_is_on_record_nobody_was_asked() -> None:
    async with staged(Say("one")) as stage:
        await stage.say()
        with dying_at("commit.StepStart.before"):
            await stage.work()
        assert stage.server.requests == []
        assert (await stage.turn()).steps == ()


class Refusing(InMemoryOperations):
    """A store that refuses the start of a call, also when nobody waits for it any more."""

    async def apply(self, commit: Commit[Any]) -> Any:
        if not isinstance(commit, StepStart):
            return await super().apply(commit)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return False


async def test_a_start_that_is_refused_to_a_turn_that_was_broken_off_is_nobodys_error() -> None:
    asked, unheard = asyncio.Event(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, told: unheard.append(told))

    async def make(_: Begun) -> tuple[Json, Usage]:
        asked.set()
        await asyncio.Event().wait()
        return "", Usage()

    steps = StepLog(Refusing(), VirtualClock(), ResumableTurn(1, 1))
    turn = asyncio.create_task(steps.once(OutsideCall(StepKind.MODEL, "sim", b""), make))
    await asked.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()
    await settle()
    del turn
    gc.collect()
    assert unheard == []
