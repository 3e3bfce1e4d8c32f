"""What a person says in one direct chat comes to mind in their others, also when the program speaks first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.month.home import TALK, VirtualHome, lived

from keepsaid.config import Config
from keepsaid.domain import memory
from keepsaid.domain.memory import Kind
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.domain.views import MessageFilter
from keepsaid.ports.model import Delta, ModelRequest

DENTIST = "My dentist is Dr Weber in Lindenstrasse."
ASKED = "Who is my dentist?"


class Notes:
    """A model that says the same to everything, and keeps what it was shown."""

    name = "test/notes"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def answer(self, request: ModelRequest, _delta: Delta) -> ModelAnswer:
        self.requests.append(request)
        return ModelAnswer("Noted.", (), Usage(1, 1), self.name)

    @property
    def recalled(self) -> str:
        """What memory brought to mind for the last request."""
        return self.requests[-1].prompt.recalled

    @property
    def tools(self) -> list[str]:
        """The names of the tools of the last request, in their order."""
        return [tool.name for tool in self.requests[-1].tools]


def config(**more: Any) -> Config:
    settled = {"bulletin": {"enabled": False}, "maintenance": {"enabled": False}, "collection": {"extractor": "none"}}
    return Config.model_validate({"channels": {TALK: {"window_ms": 0}}, **settled, **more})


async def say(home: VirtualHome, who: str, text: str, *, room: str, group: bool = False) -> None:
    """Somebody writes in a direct chat of theirs, or in a group."""
    trust = Trust.OWNER if who == "owner" else Trust.KNOWN
    origin = Origin(TALK, "default", room, who, who, not group, trust)
    number = home.instance.ids.next()
    marks = ProviderMarks(f"event-{number}", f"event-{number}")
    await home.instance.receive(Inbound(origin, Content(text.encode(), text), marks))
    await home.answered()


@pytest.mark.parametrize("who", ["owner", "bob"])
def test_an_episode_comes_to_mind_in_another_chat_at_once(who: str) -> None:
    model = Notes()

    async def life(home: VirtualHome) -> None:
        await say(home, who, DENTIST, room="phone")
        await say(home, who, ASKED, room="desk")
        assert DENTIST in model.recalled
        await say(home, "eve", ASKED, room="eve")
        assert DENTIST not in model.recalled
        await say(home, who, ASKED, room="kitchen", group=True)
        assert DENTIST not in model.recalled

    lived(model, config(), life)


def test_never_keeps_other_chats_out() -> None:
    model = Notes()

    async def life(home: VirtualHome) -> None:
        await say(home, "bob", DENTIST, room="phone")
        await say(home, "bob", ASKED, room="desk")
        assert DENTIST not in model.recalled

    lived(model, config(lanes={"cross": "never"}), life)


def test_identities_that_are_joined_share_what_was_said_before_until_they_are_split() -> None:
    model = Notes()
    bob, robert = (f"{TALK}:default:{name}" for name in ("bob", "robert"))

    async def life(home: VirtualHome) -> None:
        people = home.instance.services.people
        await say(home, "bob", DENTIST, room="phone")
        await say(home, "robert", ASKED, room="mail")
        assert DENTIST not in model.recalled
        await people.join([bob, robert])
        await say(home, "robert", ASKED, room="mail 2")
        assert DENTIST in model.recalled
        await people.split(robert)
        await say(home, "robert", ASKED, room="mail 3")
        assert DENTIST not in model.recalled

    lived(model, config(), life)


def test_what_people_say_of_themselves_in_a_group_is_heard_in_their_direct_chats() -> None:
    model = Notes()

    async def life(home: VirtualHome) -> None:
        await say(home, "bob", "I live in Porto.", room="kitchen", group=True)
        await say(home, "bob", "I work at Bosch.", room="phone")
        await asyncio.sleep(7_200)
        facts = {(one.text, one.new.scope) for one in await home.memories.find(_ALL, (Kind.FACT, Kind.IDENTITY), 99)}
        scopes = {scope for text, scope in facts if "Porto" in text}
        assert scopes == {f"conversation:{TALK}:default:kitchen", f"person:{TALK}:default:bob"}
        assert {scope for text, scope in facts if "Bosch" in text} == {f"person:{TALK}:default:bob"}
        await say(home, "bob", "Where do I live?", room="phone")
        assert "Porto" in model.recalled
        await say(home, "bob", "Where do I work?", room="kitchen", group=True)
        assert "Bosch" not in model.recalled

    lived(model, config(collection={"extractor": "rules"}), life)


_ALL = memory.Listener(None, everything=True)
_AT = "2030-01-01T08:00"


@pytest.mark.parametrize(("direct", "hears"), [(True, True), (False, False)])
def test_a_schedule_hears_as_the_person_whose_chat_it_is_in(*, direct: bool, hears: bool) -> None:
    model = Notes()
    told = {"every_s": 600, "ask": ASKED, "to": {"channel": TALK, "conversation": "desk", "direct": direct}}

    async def life(home: VirtualHome) -> None:
        await say(home, "bob", DENTIST, room="phone")
        await say(home, "bob", "good morning", room="desk")
        person = model.tools
        await asyncio.sleep(700)
        await home.answered()
        assert model.requests[-1].prompt.user.endswith(ASKED)
        assert (DENTIST in model.recalled) == hears
        if direct:
            assert model.tools == person, "the list of tools changed, and with it the cached prefix"

    lived(model, config(schedules={"named": {"morning": told}}), life)


def test_nobody_is_heard_for_in_a_chat_where_nobody_wrote() -> None:
    model = Notes()
    told = {"every_s": 600, "ask": ASKED, "to": {"channel": TALK, "conversation": "new", "direct": True}}

    async def life(home: VirtualHome) -> None:
        await say(home, "owner", DENTIST, room="phone")
        await asyncio.sleep(700)
        await home.answered()
        assert DENTIST not in model.recalled

    lived(model, config(schedules={"named": {"morning": told}}), life)


def test_at_the_terminal_a_schedule_hears_as_the_owner_before_anybody_wrote() -> None:
    model = Notes()

    async def life(home: VirtualHome) -> None:
        await home.instance.services.memories.add("Buy stamps", "todo")
        await asyncio.sleep(700)
        [story] = await home.store.find(MessageFilter("terminal", limit=1))
        assert story.replies
        assert "Buy stamps" in model.recalled
        assert "a direct chat" in model.requests[-1].prompt.system

    told = {"every_s": 600, "ask": "Which stamps should I buy?"}
    lived(model, config(schedules={"named": {"todos": told}}), life)
