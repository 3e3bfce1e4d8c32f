"""In groups of a channel with `answer: addressed`, what nobody addressed to the agent is kept and not answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.turn_cast import Stage, staged

from keepsaid.config import Config
from keepsaid.domain.addressing import Dialogue, decide, names_any
from keepsaid.domain.batch import WaitingGroup
from keepsaid.domain.commits import Settle, TakeReplies
from keepsaid.domain.message import EDITED, Content, Inbound, Origin, ProviderMarks, StoredMessage, Trust
from keepsaid.domain.reply import Delivered
from keepsaid.domain.route import Action, Addressing, Edits, Routes, Rule, foreseen
from keepsaid.testing.model_script import Say

GROUP = Origin("chat", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
ROUTES = Routes(addressing=Addressing(frozenset({"chat"}), ("Ada", "keepsaid")))
WHY = "nobody addressed the agent; channels.chat.answer is addressed"


def message(text: str, origin: Origin = GROUP, event: str = "", reply_to: str | None = None) -> StoredMessage:
    inbound = Inbound(origin, Content(text.encode(), text, event), ProviderMarks(reply_to=reply_to))
    return StoredMessage(1, inbound.lane, 1, inbound, 1_000)


async def said(stage: Stage, text: str) -> None:
    await stage.flow.receive(stage.door, Inbound(GROUP, Content(text.encode(), text)))
    await stage.flow.route()
    assert await stage.work() == "done"


@pytest.mark.parametrize(
    ("text", "is_addressed"),
    [
        ("Ada, what is for lunch?", True),
        ("what do you think @ada", True),
        ("ADA!", True),
        ("ask keepsaid about it", True),
        ("Adams is here", False),
        ("the armada sails", False),
        ("mail me at x@ada.org", False),
        ("lunch?", False),
        ("/status", True),
    ],
)
async def test_a_group_is_answered_where_it_addresses_the_agent(text: str, *, is_addressed: bool) -> None:
    async with staged(Say("yes"), routes=ROUTES) as stage:
        await said(stage, text)
        turn = await stage.turn()
        assert turn.batch.verdict.action is (Action.FORWARD if is_addressed else Action.LISTEN)
        assert bool(await stage.replies()) is is_addressed
        if not is_addressed:
            assert (turn.reason, stage.server.requests) == (f"silent: the verdict is listen: {WHY}", [])
            assert [record.text for record in turn.records] == [text], "it is kept for the next turn"


async def test_direct_chats_events_and_other_channels_are_answered_whatever_they_say() -> None:
    for origin, event in (
        (replace(GROUP, direct=True), ""),
        (GROUP, "push"),
        (replace(GROUP, channel="other"), ""),
    ):
        assert decide(ROUTES, message("lunch?", origin, event), {})[0].action is Action.FORWARD, (origin, event)


async def test_what_answers_the_agent_is_answered() -> None:
    group = message("the second one", reply_to="r-7")
    assert decide(ROUTES, group, {})[0].action is Action.LISTEN
    assert decide(ROUTES, group, {}, Dialogue(answered=frozenset({"r-7"})))[0].action is Action.FORWARD
    assert decide(ROUTES, group, {}, Dialogue(asked=frozenset({"chat:me:ann"})))[0].action is Action.FORWARD
    assert decide(ROUTES, group, {}, Dialogue(asked=frozenset({"chat:me:bob"})))[0].action is Action.LISTEN


DIRECT = replace(GROUP, direct=True)


def edit_of(provider_id: str, text: str, origin: Origin = DIRECT, at: str = "e1") -> Inbound:
    """Somebody edits a message."""
    return Inbound(origin, Content(text.encode(), text, EDITED), ProviderMarks(at, provider_id))


def test_a_late_edit_is_noted_answered_or_ignored_as_the_channel_says() -> None:
    late = Dialogue(settled=frozenset({"m1"}))
    inbound = edit_of("m1", "to Porto, I mean")
    edit = StoredMessage(1, inbound.lane, 1, inbound, 1_000)
    for heed, action in ((Edits.NOTE, Action.LISTEN), (Edits.IGNORE, Action.DROP), (Edits.ANSWER, Action.FORWARD)):
        routes = replace(ROUTES, edits={"chat": heed})
        assert decide(routes, edit, {}, late)[0].action is action
        assert decide(routes, edit, {}, Dialogue(settled=frozenset({"m2"})))[0].action is Action.FORWARD
    noted = replace(ROUTES, edits={"chat": Edits.NOTE})
    assert decide(noted, edit, {}, late)[0].reason == "it edits what was settled before; channels.chat.edits is note"
    rule = Rule("edits", {"event": (EDITED,)}, Action.FORWARD)
    assert decide(replace(noted, rules=(rule,)), edit, {}, late)[0].action is Action.FORWARD
    assert foreseen(replace(Routes(), edits={"chat": Edits.NOTE}), edit.lane) is None, "the messages must be read"
    assert noted.version != ROUTES.version


async def test_an_edit_in_a_group_is_to_the_agent_only_where_it_says_so() -> None:
    assert decide(ROUTES, message("lunch?", event=EDITED), {})[0].action is Action.LISTEN
    assert decide(ROUTES, message("Ada, lunch?", event=EDITED), {})[0].action is Action.FORWARD


async def test_an_edit_of_what_was_answered_is_kept_for_the_next_turn_and_starts_none() -> None:
    async with staged(Say("noted"), Say("Porto"), routes=replace(ROUTES, edits={"chat": Edits.NOTE})) as stage:
        first = Inbound(DIRECT, Content(b"to Rome", "to Rome"), ProviderMarks("d1", "m1"))
        await stage.flow.receive(stage.door, first)
        early = await stage.flow.receive(stage.door, edit_of("m1", "to Milan"))
        await stage.flow.route()
        assert await stage.work() == "done"
        assert (await stage.turn()).batch.verdict.action is Action.FORWARD, "both are answered at once"
        assert early.number == 2
        await stage.flow.receive(stage.door, edit_of("m1", "to Porto", at="e2"))
        await stage.flow.route()
        assert await stage.work() == "done"
        assert len(stage.server.requests) == 1
        where = Inbound(DIRECT, Content(b"where to?", "where to?"), ProviderMarks("d2", "m2"))
        await stage.flow.receive(stage.door, where)
        await stage.flow.route()
        assert await stage.work() == "done"
        assert "to Porto" in str(stage.server.requests[-1].body)


@pytest.mark.parametrize("conversation", ["room", "elsewhere"])
async def test_an_edit_is_late_only_where_its_original_was_settled(conversation: str) -> None:
    async with staged(Say("noted"), routes=replace(ROUTES, edits={"chat": Edits.NOTE})) as stage:
        await stage.flow.receive(stage.door, Inbound(DIRECT, Content(b"a", "a"), ProviderMarks("d1", "m1")))
        await stage.flow.route()
        assert await stage.work() == "done"
        await stage.flow.receive(stage.door, Inbound(DIRECT, Content(b"b", "b"), ProviderMarks("d2", "m2")))
        place = replace(DIRECT, conversation=conversation)
        for number in ("m1", "m2", "m3"):
            received = await stage.flow.receive(stage.door, edit_of(number, f"new {number}", place, f"e{number}"))
        story = await stage.store.story(received.id)
        assert story is not None
        [group] = await stage.store.waiting([story.message.lane])
        assert group.settled == (frozenset({"m1"}) if conversation == "room" else frozenset())


async def test_a_rule_goes_before_and_what_is_dropped_by_default_stays_dropped() -> None:
    rules = Routes((Rule("all", {"channel": ("chat",)}, Action.FORWARD),), addressing=ROUTES.addressing)
    talk = message("lunch?")
    assert decide(rules, talk, {})[0].action is Action.FORWARD
    assert decide(replace(ROUTES, default=Action.DROP), talk, {})[0].action is Action.DROP
    assert foreseen(rules, talk.lane) is not None
    assert foreseen(ROUTES, talk.lane) is None, "the messages must be read"


def test_channels_with_groups_default_to_addressed() -> None:
    config = Config(
        channels={"telegram": {}, "discord": {"answer": "always"}, "crm": {}, "http": {"answer": "addressed"}}
    )
    addressing = config.table().addressing
    assert addressing.channels == {"telegram", "http"}
    assert names_any("hello Keepsaid", addressing.names)
    assert Config().table().addressing.channels == frozenset()
    assert Config().table().version == Routes(channel_defaults={"github": Action.DROP}).version


async def test_a_reply_to_what_the_agent_sent_is_found_by_the_name_that_the_provider_gave_it() -> None:
    async with staged(Say("tea or coffee?"), Say("coffee it is"), routes=ROUTES) as stage:
        await said(stage, "Ada, what is there?")
        place = ("chat", "me", "room")
        now = stage.clock.now_ms()
        [reply] = await stage.store.apply(TakeReplies(("chat",), "me", 9, now))
        await stage.store.apply(Settle(reply.id, reply.fence, Delivered.CONFIRMED, now, provider_id="tg-1"))
        group = await _waiting(stage, "the second one", "tg-1")
        assert (group.answered, group.lane[:3]) == (frozenset({"tg-1"}), place)
        assert (await _waiting(stage, "no, the first", "tg-9")).answered == frozenset()


async def _waiting(stage: Stage, text: str, reply_to: str) -> WaitingGroup:
    inbound = Inbound(GROUP, Content(text.encode(), text), ProviderMarks(reply_to=reply_to))
    received = await stage.flow.receive(stage.door, inbound)
    story = await stage.store.story(received.id)
    assert story is not None
    [group] = await stage.store.waiting([story.message.lane])
    return group
