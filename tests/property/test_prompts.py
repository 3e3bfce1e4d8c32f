"""A prompt shows the past of its own lane, whatever other lanes are called and whoever speaks in them."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.unit.slot_cast import Scripted, Stage

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.domain.compaction import CutContext, CutReason, Summarise
from keepsaid.domain.context import Made
from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Prompt, Record
from keepsaid.domain.turn import ModelAnswer
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import KeepsaidError
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.ports.store import Store

WORD = re.compile(r"w\d+x")
_CUTS = {"cut": CutReason.GUARD, "reset": CutReason.RESET}
FEW = st.sampled_from([None, None, "1", "2"])


class Place(NamedTuple):
    """Where something is said; channels, accounts and conversations have the same names."""

    channel: str
    account: str
    conversation: str
    topic: str | None


class Happening(NamedTuple):
    """What happens: something is said, and the lane of what was said last is summarised, cut or reset."""

    what: str
    place: Place
    person: str
    marks: ProviderMarks


PLACES = st.sampled_from(
    [
        Place("chat", "chat", "chat", None),
        Place("chat", "chat", "chat", "1"),
        Place("chat", "chat", "hook", None),
        Place("chat", "hook", "chat", None),
        Place("hook", "chat", "chat", None),
        Place("hook", "hook", "hook", "1"),
    ]
)
WHAT = st.sampled_from(["say", "say", "say", "work", "work", "summarise", "cut", "reset"])
HAPPENINGS = st.lists(
    st.builds(
        Happening, WHAT, PLACES, st.sampled_from(["Ann", "chat", "hook"]), st.builds(ProviderMarks, FEW, FEW, FEW)
    ),
    min_size=8,
    max_size=30,
)


class Echo(Scripted):
    """Says again what it was told last."""

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """The words of the new messages."""
        self.asked.append(request)
        return ModelAnswer(" ".join(WORD.findall(request.prompt.user)), model=self.name)


@dataclass
class Past:
    """What the prompt of a lane has to show: the words a summary stands for, and those of the records."""

    summarised: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


class Talk:
    """A talk in many lanes over a store, beside plain lists of what was said in each."""

    def __init__(self, store: Store) -> None:
        self.stage = Stage(store, model=Echo())
        self.lanes: dict[str, Lane] = {}
        self.pasts: defaultdict[Lane, Past] = defaultdict(Past)
        self.prompts: list[Prompt] = []
        self.last: Lane | None = None

    async def happen(self, one: Happening) -> None:
        """One thing."""
        if one.what == "say":
            await self._say(one)
        elif one.what == "work":
            await self.work()
        elif self.last is not None:
            await self._shorten(self.last, one.what)

    async def _say(self, one: Happening) -> None:
        word = f"w{len(self.lanes)}x"
        channel, account, conversation, topic = one.place
        origin = Origin(channel, account, conversation, one.person.lower(), one.person, trust=Trust.KNOWN)
        inbound = Inbound(origin, Content(word.encode(), word), one.marks, topic=topic)
        try:
            received = await self.stage.flow.receive(self.stage.door, inbound)
        except KeepsaidError:
            return
        self.lanes[word], self.last = received.lane, received.lane
        await self.stage.flow.route()

    async def work(self) -> None:
        """Everything that waits is answered."""
        flow = self.stage.flow
        while leases := await flow.claim(self.stage.leases, 1):
            claimed = await flow.open(leases[0])
            made = [(await flow.answering.context(claimed, flow.answering.listen(claimed)))[2] for _ in range(2)]
            await flow.answer(claimed)
            prompt = self.stage.model.asked[-1].prompt
            assert made == [prompt, prompt]
            self._compare(prompt)

    def _compare(self, prompt: Prompt) -> None:
        heard = WORD.findall(prompt.user)
        [lane] = {self.lanes[word] for word in heard}
        past = self.pasts[lane]
        assert WORD.findall(" ".join(record.text for record in prompt.history)) == past.told
        assert WORD.findall(prompt.summary) == past.summarised
        layers = {layer.name: WORD.findall(layer.text) for layer in prompt.layers}
        assert layers["recent"] == past.told
        assert layers.get("summary", []) == past.summarised
        past.told += heard + heard
        self.prompts.append(prompt)

    async def _shorten(self, lane: Lane, how: str) -> None:
        past, store = self.pasts[lane], self.stage.store
        tail = await store.context(lane, 1_000)
        if not tail.positions:
            return
        at = self.stage.clock.now_ms()
        if how == "summarise":
            text = " ".join(past.summarised + past.told)
            assert await store.apply(Summarise(lane, tail.version, tail.head, text, Made.MODEL, "m", at))
            past.summarised = WORD.findall(text)
        else:
            assert await store.apply(CutContext(lane, tail.version, tail.head, _CUTS[how], at))
            past.summarised = past.summarised if how == "cut" else []
        past.told = []


class Shown(NamedTuple):
    """What the model saw, turn by turn, and what people were told."""

    prompts: list[tuple[str, tuple[tuple[str, Record], ...]]]
    replies: list[str]


async def shown(talk: Talk, happenings: list[Happening], between: Callable[[Talk], Awaitable[None]]) -> Shown:
    """A talk from beginning to end, with something done before each thing that happens."""
    for one in happenings:
        await between(talk)
        await talk.happen(one)
    await talk.work()
    stories = await talk.stage.store.find(MessageFilter(limit=1_000))
    sent = [(prompt.system, prompt.parts) for prompt in talk.prompts]
    return Shown(sent, [reply.draft.text for story in stories for reply in story.replies])


async def nothing(_: Talk) -> None:
    """The process goes on."""


async def kept(file: Path, happenings: list[Happening], *, restarts: bool) -> Shown:
    """A talk over a file; with restarts each thing that happens happens to another process."""
    talk = Talk(await open_operations(file))

    async def restart(talk: Talk) -> None:
        await close(talk)
        talk.stage.store = await open_operations(file)
        talk.stage.revive()

    try:
        return await shown(talk, happenings, restart if restarts else nothing)
    finally:
        await close(talk)


async def close(talk: Talk) -> None:
    """Let go of the file."""
    store = talk.stage.store
    assert isinstance(store, SqliteOperations)
    await store.close()


@given(happenings=HAPPENINGS)
@settings(max_examples=examples(12), deadline=None)
def test_a_prompt_shows_the_records_and_summary_of_its_lane_alone(happenings: list[Happening]) -> None:
    async def both() -> tuple[Shown, Shown]:
        with TemporaryDirectory() as folder:
            memory = await shown(Talk(InMemoryOperations()), happenings, nothing)
            return memory, await kept(Path(folder, "buffer.db"), happenings, restarts=False)

    memory, file = asyncio.run(both())
    assert memory == file


@given(happenings=HAPPENINGS)
@settings(max_examples=examples(6), deadline=None)
def test_a_restart_between_any_two_messages_changes_nothing_the_model_or_a_person_sees(
    happenings: list[Happening],
) -> None:
    async def both() -> tuple[Shown, Shown]:
        with TemporaryDirectory() as folder:
            memory = await shown(Talk(InMemoryOperations()), happenings, nothing)
            return memory, await kept(Path(folder, "buffer.db"), happenings, restarts=True)

    whole, restarted = asyncio.run(both())
    assert whole == restarted
