"""Clients that send their whole history: what a person said is stored once, in the context in which it was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest
from tests.unit.http_cast import site

from keepsaid.domain.client_history import (
    ChainedMessage,
    ClientCall,
    HistoryLine,
    KnownMessages,
    Placement,
    Side,
    placement,
)
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.regeneration import REGENERATE
from keepsaid.domain.views import MessageFilter
from keepsaid.pipeline.prompt.client_parts import ClientContext

CHATS, CALLS = 1_000, 14
WORDS = ("yes", "no", "go on", "why?", "and then?")
NOW = 1_000_000

Path_ = tuple[str, ...]


@dataclass
class Client:
    """A program in which a person writes: all that was said in its chat, and the history it shows now."""

    chance: Random
    conversation: str
    history: Path_ = ()
    names_answers: bool = False
    known: list[Path_] = field(default_factory=list)
    answers: dict[Path_, str] = field(default_factory=dict)
    compactions: int = 0

    def call(self) -> ClientCall:
        """One more call: a new message, an edit, a fork, the same again, or after the history was shortened."""
        chance = self.chance
        deed = chance.choice(("say", "say", "say", "edit", "fork", "retry", "regenerate", "compact"))
        if not self.known or deed == "say":
            self.history = (*self.history, chance.choice(WORDS))
        elif deed == "edit":
            place = chance.randrange(len(self.history))
            self.history = (*self.history[:place], chance.choice(WORDS))
        elif deed == "fork":
            self.history = (*chance.choice(self.known), chance.choice(WORDS))
        elif deed == "compact" and len(self.history) > 1:
            self.compactions += 1
            self.history = (f"summary {self.conversation} {self.compactions}", chance.choice(WORDS))
        self.known.append(self.history)
        if self.names_answers and (deed == "regenerate" or self.history not in self.answers):
            self.answers[self.history] = f"answer {len(self.known)}"
        return ClientCall(tuple(self._lines()), self.conversation, answer=self.answer)

    @property
    def answer(self) -> str:
        """The name of the answer that the client shows now, "" if it names none."""
        return self.answers.get(self.history, "")

    def _lines(self) -> Sequence[HistoryLine]:
        lines = list[HistoryLine]()
        for n, text in enumerate(self.history):
            spaced = f" {text}\n" if self.chance.random() < 0.1 else text
            lines += [HistoryLine(Side.USER, spaced), HistoryLine(Side.ASSISTANT, f"answer {n}")]
        return lines[:-1]


class Kept:
    """What a store would hold: messages by lane, and the context in which each was said."""

    def __init__(self) -> None:
        self.messages: list[ChainedMessage] = []
        self.texts: dict[int, str] = {}
        self.context: dict[int, Path_] = {}
        self._lanes: dict[Lane, Path_] = {}

    def place(self, call: ClientCall) -> Placement:
        here = [one for one in self.messages if call.conversation in ("", one.lane.conversation)]
        heads = {lane: sum(one.lane == lane for one in here) for lane in {one.lane for one in here}}
        now = [replace(one, head=heads[one.lane]) for one in here]
        wanted = set(call.chain)
        known = [one for one in reversed(now) if one.place in wanted]
        versions = [one for one in known if one.place == call.chain[-1]]
        newest = now[-1] if now and call.conversation else None
        return placement(call, KnownMessages(known, newest, versions), NOW)

    def apply(self, call: ClientCall) -> int:
        """Place a call and store what is new; returns the message it belongs to."""
        made = self.place(call)
        if made.stored is not None:
            return made.stored.id
        lane = Lane("library", "ann", made.conversation, lane_key(made.conversation, made.topic or None))
        number = sum(one.lane == lane for one in self.messages) + 1
        if lane not in self._lanes:
            self._lanes[lane] = self.context[made.after] if made.after is not None else ()
        message_id = len(self.messages) + 1
        assert made.key not in {one.key for one in self.messages}, "a new message has a key of its own"
        self.messages.append(ChainedMessage(message_id, lane, number, number, made.place, made.key, NOW))
        if made.repeats is None:
            self.texts[message_id] = made.text
        said = made.text.strip() if made.repeats is None else self.context[made.repeats.id][-1]
        self.context[message_id] = self._lanes[lane] = (*self._lanes[lane], said)
        return message_id


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_client_does_each_message_is_stored_once_in_its_context(seed: int) -> None:
    chance, chats, ids_seen, regenerated = Random(seed), CHATS // 4, 0, 0
    for n in range(chats):
        kept = Kept()
        client = Client(chance, f"chat {n}" if chance.random() < 0.7 else "", names_answers=chance.random() < 0.5)
        by_call: dict[tuple[Path_, str], int] = {}
        for _ in range(CALLS):
            message_id = kept.apply(client.call())
            path = client.history
            assert by_call.setdefault((path, client.answer), message_id) == message_id, "the same call is the same"
            if not path[0].startswith("summary"):
                assert kept.context[message_id] == path
        assert len(kept.messages) == len(set(by_call.values())) == len(by_call)
        assert sorted(text.strip() for text in kept.texts.values()) == sorted(
            path[-1] for path in {p for p, _ in by_call}
        )
        regenerated += len(kept.messages) - len(kept.texts)
        ids_seen += len(kept.messages)
    assert ids_seen > chats * 5
    assert regenerated > chats / 4


async def test_a_real_store_holds_each_message_once(tmp_path: Path) -> None:
    chance, said = Random(7), set[tuple[str, Path_]]()
    async with site(tmp_path, answering=False, keys={"ann": {"token": "a" * 40}}) as here:
        chats, who = here.instance.services.chats, next(iter(here.instance.config.principals().values()))
        for n in range(40):
            client = Client(chance, f"chat {n}", names_answers=n % 2 == 0)
            for _ in range(CALLS):
                call = client.call()
                said.add((call.conversation, client.history))
                made = await chats.place(who, call)
                if made.stored is None:
                    await here.instance.receive(await chats.inbound(who, made, ClientContext(), {}))
        found = await here.instance.operations.find(MessageFilter(limit=10_000))
    texts = [one.message.text.strip() for one in found if one.message.inbound.content.event != REGENERATE]
    assert len(texts) == len(said) > 200
    assert sorted(texts) == sorted(path[-1] for _, path in said)
    assert len(found) > len(texts) + 10
    assert not any(one.message.text for one in found if one.message.inbound.content.event == REGENERATE)


def test_two_lines_in_a_row_are_one_message_and_lines_of_another_model_are_shown() -> None:
    lines = (
        HistoryLine(Side.USER, "one"),
        HistoryLine(Side.ASSISTANT, "an answer of another model"),
        HistoryLine(Side.USER, "two"),
        HistoryLine(Side.USER, "three"),
    )
    made = placement(ClientCall(lines, "chat"), KnownMessages(), NOW)
    assert made.text == "two\n\nthree"
    assert [line.text for line in made.unseen] == ["one", "an answer of another model"]


def test_a_line_without_history_is_new_once_its_answer_was_fetched_long_ago() -> None:
    call = ClientCall((HistoryLine(Side.USER, "status?"),))
    lane = Lane("library", "ann", "chat-1", "root:chat-1")
    first = ChainedMessage(1, lane, 1, 1, call.chain[0], "chain:1", NOW)
    assert placement(call, KnownMessages((first,)), NOW + 3_600_000).stored == first
    fetched = replace(first, is_fetched=True)
    assert placement(call, KnownMessages((fetched,)), NOW + 30_000).stored == fetched
    later = placement(call, KnownMessages((fetched,)), NOW + 3_600_000)
    assert later.stored is None
    assert later.conversation != placement(call, KnownMessages(), NOW).conversation


def test_a_script_that_asks_the_same_for_ever_is_answered_each_time() -> None:
    call, keys, last = ClientCall((HistoryLine(Side.USER, "status?"),)), set[str](), list[ChainedMessage]()
    for n in range(1_000):
        made = placement(call, KnownMessages(last), NOW + n * 3_600_000)
        assert made.stored is None
        keys.add(made.key)
        lane = Lane("library", "ann", made.conversation, lane_key(made.conversation))
        stored = ChainedMessage(n + 1, lane, 1, 1, made.place, made.key, NOW + n * 3_600_000 - 120_000)
        last = [replace(stored, is_fetched=True)]  # a store finds the newest message of a place
    assert len(keys) == 1_000


def test_a_key_says_which_call_it_is() -> None:
    call = ClientCall((HistoryLine(Side.USER, "yes"),), "room", "key-1")
    lane = Lane("library", "ann", "room", "root:room")
    first = ChainedMessage(1, lane, 1, 1, call.chain[0], call.stored_key, NOW)
    assert placement(call, KnownMessages((first,), first), NOW).stored == first
    other = placement(replace(call, key="key-2"), KnownMessages((first,), first), NOW)
    assert other.stored is None
    assert other.key != first.key
