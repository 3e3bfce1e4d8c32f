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


async def two_hours_pass(home: VirtualHome) -> None:
    """Let two hours pass in which nothing is said; in the last minute, what is due is done."""
    home.jump(7_140)
    await asyncio.sleep(60)


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
        await two_hours_pass(home)
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


TWENTY = (
    ("My dentist is Dr Weber.", "Who is my dentist?"),
    ("Our wifi password is on the fridge.", "Where is the wifi password?"),
    ("I parked the car on level 3 of the Aurora garage.", "Where did I park the car?"),
    ("My sister's birthday is on the 4th of May.", "When is my sister's birthday?"),
    ("The plumber comes on Thursday at nine.", "When does the plumber come?"),
    ("I am allergic to penicillin.", "What am I allergic to?"),
    ("My passport number ends with 771.", "What does my passport number end with?"),
    ("We chose Postgres for the new project.", "Which database did we choose for the new project?"),
    ("I take the 7:42 train to work.", "Which train do I take to work?"),
    ("My shoe size is 43.", "What is my shoe size?"),
    ("The spare key is under the blue pot.", "Where is the spare key?"),
    ("Tom owes me 50 euros.", "How much does Tom owe me?"),
    ("I finished the book about the Antarctic.", "Which book did I finish?"),
    ("My new manager is called Priya.", "What is the name of my new manager?"),
    ("The flight to Tokyo leaves on 12 March.", "When does my flight to Tokyo leave?"),
    ("I promised Ana to water her plants.", "What did I promise Ana?"),
    ("The rent is 940 euros a month.", "How much is the rent?"),
    ("My bike has a puncture in the back wheel.", "What is wrong with my bike?"),
    ("I prefer my coffee without sugar.", "How do I like my coffee?"),
    ("The vet said Rex needs a special diet.", "What did the vet say about Rex?"),
)
"""Things said in one chat, and everyday questions about them in another."""


def test_of_twenty_things_said_in_one_chat_none_is_missed_in_another() -> None:
    model, found, lines = Notes(), [], []

    async def life(home: VirtualHome) -> None:
        for said, _ in TWENTY:
            await say(home, "owner", said, room="phone")
        for number, (said, question) in enumerate(TWENTY):
            await say(home, "owner", question, room=f"desk {number}")
            found.append(said in model.recalled)
            lines.append(model.recalled.count("\n- ") or model.recalled.count("\n"))

    lived(model, config(), life)
    assert found.count(True) >= 19
    assert max(lines) <= 6


def test_what_was_said_before_a_move_comes_after_it_and_is_marked() -> None:
    model = Notes()

    async def life(home: VirtualHome) -> None:
        await say(home, "owner", "I live in Lisbon.", room="phone")
        await two_hours_pass(home)
        await say(home, "owner", "I moved to Porto.", room="phone")
        await two_hours_pass(home)
        for room in ("desk", "phone"):
            await say(home, "owner", "/reset", room=room)
            await say(home, "owner", "Where do I live?", room=room)
            lines = model.recalled.splitlines()
            porto = min(at for at, line in enumerate(lines) if "Porto" in line)
            lisbon = [(at, line) for at, line in enumerate(lines) if "Lisbon" in line]
            assert all(at > porto and "held until" in line for at, line in lisbon), lines

    lived(model, config(collection={"extractor": "rules"}), life)
