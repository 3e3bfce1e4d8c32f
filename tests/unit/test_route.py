"""Rules say what they did in words made from the batch, and why they did not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from keepsaid.domain.batch import DueLane, Routed, WaitingGroup, Window
from keepsaid.domain.message import Content, StoredMessage
from keepsaid.domain.route import Action, Routes, Rule, describe, reasoned, unmatched
from keepsaid.pipeline.routing import route_group, route_unread
from keepsaid.testing.builders import lane_of, said

AT = 1_790_000_000_000


class Ids:
    """Numbers that grow."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last

    def follow(self, number: int) -> None:
        self._last = max(self._last, number)


def heard(*said_by: tuple[str, str, str], payload: object = None) -> list[StoredMessage]:
    """Messages of one lane, a second apart: name, event and text of each."""
    body = json.dumps(payload).encode()
    messages = []
    for n, (name, event, text) in enumerate(said_by):
        one = said(text)
        inbound = replace(one, origin=replace(one.origin, name=name), content=Content(body, text, event))
        messages.append(StoredMessage(n + 1, lane_of(), n + 1, inbound, AT + n * 1_000))
    return messages


async def judged(rule: Rule, messages: Sequence[StoredMessage]) -> Sequence[Routed]:
    group = WaitingGroup(lane_of(), 0, tuple(messages))
    return (await route_group(Routes((rule,)), group, Window(), Ids(), AT)).batches


def test_a_template_tells_of_the_batch_and_of_its_first_message() -> None:
    messages = heard(("Ann", "push", "one"), ("Bo", "push", "two"), ("Ann", "closed", "three"), payload={"n": 7})
    template = (
        "{{count}} in {{channel}}/{{conversation}} by {{senders}}: {{events}}, first {{event}}; {{ payload.n }} {{n}}"
    )
    told = describe(template, messages, {"n": 7})
    assert told == "3 in test/room by Ann, Bo: push, closed, first push; 7 7"
    assert describe("{{first_at}} {{last_at}}", messages, {}) == "2026-09-21T14:13:20Z 2026-09-21T14:13:22Z"
    assert describe("{{text}}|{{messages}}|{{typo}}", messages, {}) == "one|one\ntwo\nthree|{{typo}}"


def test_who_has_no_name_is_called_by_id() -> None:
    assert describe("{{senders}}", heard(("", "", "hello")), {}) == "ann"


def test_a_reason_is_one_line_of_bounded_length() -> None:
    messages = heard(("Ann", "", "a\n b"), ("Ann", "", "x" * 900))
    assert reasoned("said: {{text}}", messages, {}) == "said: a b"
    assert len(reasoned("{{messages}}", messages, {})) == 500


async def test_the_reason_of_a_batch_is_rendered_whatever_is_done_with_it() -> None:
    messages = heard(("Ann", "push", "one"), ("Bo", "push", "two"), payload={"who": {"login": "bo"}})
    for action in Action:
        rule = Rule("r", {}, action, reason="{{count}} of {{payload.who.login}}, {{nothing}}")
        (batch,) = await judged(rule, messages)
        assert (batch.verdict.action, batch.verdict.reason) == (action, "2 of bo, {{nothing}}")


async def test_a_reason_without_places_stays_as_it_is_written() -> None:
    (batch,) = await judged(Rule("r", {}, Action.DROP, reason="robots  {need} no answer"), heard(("Ann", "", "hi")))
    assert batch.verdict.reason == "robots  {need} no answer"


def test_another_reason_is_another_version() -> None:
    assert Routes((Rule("r", {}, Action.DROP, reason="a"),)).version != Routes((Rule("r", {}, Action.DROP),)).version


def test_a_rule_says_what_keeps_it_from_matching() -> None:
    (message,) = heard(("Ann", "push", "hello"))
    match = {"channel": ("test",), "event": ("opened", "closed*"), "payload.n": ("7",)}
    rule = Rule("r", match, Action.DROP)
    assert unmatched(rule, message, {}) == "event is not 'opened' or 'closed*': it is 'push'"
    assert (
        unmatched(replace(rule, match={"payload.n": ("7",)}), message, {})
        == "payload.n is not '7': the message has none"
    )
    assert unmatched(replace(rule, match={"channel": ("test",)}), message, {}) is None


def due(messages: Sequence[StoredMessage]) -> DueLane:
    """What their lane tells of messages that wait."""
    best, chars = min(one.inbound.priority for one in messages), sum(len(one.text) for one in messages)
    last = messages[-1]
    return DueLane(last.lane, messages[0].number - 1, last.number, last.id, messages[0].received_at, best, chars)


HEARD = (("Ann", "", "one"), ("Bo", "", "two"))
OF_THE_LANE = (
    (),
    (Rule("all", {}, Action.FORWARD, priority=3),),
    (Rule("here", {"channel": ("te*",), "conversation": ("room", "den")}, Action.FORWARD, reason="because"),),
    (Rule("elsewhere", {"channel": ("github",), "event": ("push",)}, Action.DROP),),
    (
        Rule("elsewhere", {"account": ("you",), "text": ("*",)}, Action.SPAWN),
        Rule("me", {"account": ("me",)}, Action.FORWARD),
    ),
)


@pytest.mark.parametrize("rules", OF_THE_LANE, ids=str)
async def test_what_a_lane_decides_is_decided_as_if_its_messages_were_read(rules: tuple[Rule, ...]) -> None:
    routes, messages = Routes(rules), heard(*HEARD)
    unread = route_unread(routes, due(messages), Window(), Ids(), AT)
    assert unread == await route_group(routes, WaitingGroup(lane_of(), 0, tuple(messages)), Window(), Ids(), AT)


@pytest.mark.parametrize(
    "routes",
    [
        Routes((Rule("who", {"sender": ("ann",)}, Action.FORWARD),)),
        Routes((Rule("what", {"channel": ("test",), "payload.n": ("7",)}, Action.FORWARD),)),
        Routes((Rule("drop", {}, Action.DROP),)),
        Routes((Rule("work", {"channel": ("test",)}, Action.SPAWN),)),
        Routes((Rule("told", {}, Action.FORWARD, reason="{{count}} came"),)),
        Routes((Rule("who", {"trust": ("owner",)}, Action.DROP), Rule("all", {}, Action.FORWARD))),
        Routes(default=Action.DROP),
        Routes(channel_defaults={"test": Action.DROP}),
    ],
    ids=repr,
)
def test_messages_are_read_when_a_rule_asks_for_them_or_somebody_is_told(routes: Routes) -> None:
    assert route_unread(routes, due(heard(*HEARD)), Window(), Ids(), AT) is None


def test_messages_are_read_when_one_batch_may_not_hold_them_all() -> None:
    two, long = due(heard(*HEARD)), due(heard(("Ann", "", "a long story")))
    for window, fits in ((Window(count_max=1), False), (Window(chars_max=5), False), (Window(chars_max=6), True)):
        assert (route_unread(Routes(), two, window, Ids(), AT) is not None) is fits
    assert route_unread(Routes(), long, Window(chars_max=5), Ids(), AT) is not None, "a single message is never cut"
