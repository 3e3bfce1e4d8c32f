"""Slack posts its events: only what it signed is read; who is named in an event, and in which thread it stands."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.unit.slack_cast import api_of

from keepsaid.adapters.channels.slack_api import SlackApi
from keepsaid.adapters.channels.slack_events import SlackCalls, SlackHook
from keepsaid.adapters.channels.slack_line import SlackAccount, SlackLine
from keepsaid.adapters.channels.slack_updates import SlackBot, incoming_of_command, incoming_of_event
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError, Forged
from keepsaid.ports.channel import HookAnswer, Incoming
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.slack import (
    ACCOUNT,
    BOT,
    SECRET,
    TEAM,
    SlackError,
    SlackServer,
    signed,
    url_verification,
)

_BOT = SlackBot(TEAM, BOT, "keepsaid")
_FORM = {"content-type": "application/x-www-form-urlencoded"}


def event(text: str = "hello", **fields: Any) -> dict[str, Any]:
    """The payload of an event: a message of a channel, with other fields."""
    message = {
        "type": "message",
        "user": "U7",
        "text": text,
        "ts": "4.000005",
        "channel": "C9",
        "channel_type": "channel",
    }
    return {
        "type": "event_callback",
        "event_id": "Ev1",
        "token": "t0ken",
        "event": {**message, "channel_type": "channel", **fields},
    }


def read(text: str = "hello", **fields: Any) -> Incoming:
    incoming = incoming_of_event(event(text, **fields), _BOT)
    assert incoming is not None
    return incoming


def test_a_message_says_where_it_stands() -> None:
    said = read("the mast", user_profile={"real_name": "Ann"}, thread_ts="3.000001")
    assert (said.text, said.sender, said.name, said.conversation) == ("the mast", "U7", "Ann", "slack:C9")
    assert (said.topic, said.provider_id, said.external_id) == ("3.000001", "4.000005", "slack:C9:4.000005")
    assert (said.account, said.direct, said.addressed, said.event) == (ACCOUNT, False, False, "")
    assert said.payload is not None
    assert b"t0ken" not in said.payload
    assert json.loads(said.payload)["event"]["text"] == "the mast"


@pytest.mark.parametrize(
    ("fields", "is_addressed"),
    [
        ({"text": "hello there"}, False),
        ({"text": f"<@{BOT}> hello"}, True),
        ({"text": f"well, <@{BOT}|keepsaid>?"}, True),
        ({"text": f"&lt;@{BOT}&gt; in code"}, False),
        ({"text": f"@{BOT} keepsaid"}, False),
        ({"text": "<@U0OTHER> hello"}, False),
        ({"thread_ts": "3.1", "parent_user_id": BOT}, True),
        ({"thread_ts": "3.1", "parent_user_id": "U8"}, False),
        ({"type": "app_mention", "text": f"<@{BOT}>"}, True),
    ],
)
def test_slack_says_who_is_addressed(fields: dict[str, Any], *, is_addressed: bool) -> None:
    assert read(**fields).addressed is is_addressed


def test_a_message_to_the_bot_begins_a_thread_and_one_in_a_direct_message_does_not() -> None:
    assert read(f"<@{BOT}> plan it").topic == "4.000005"
    assert read(f"<@{BOT}> plan it", thread_ts="3.000001").topic == "3.000001"
    assert read("just talk").topic is None
    direct = read(f"<@{BOT}> plan it", channel="D1", channel_type="im")
    assert (direct.direct, direct.topic) == (True, None)
    answer = read("why?", thread_ts="3.000001", parent_user_id=BOT)
    assert (answer.topic, answer.reply_to) == ("3.000001", "3.000001")


def test_a_message_and_its_mention_are_one() -> None:
    text = f"<@{BOT}> hello"
    mention = read(text, type="app_mention", channel_type=None)
    assert (mention.external_id, mention.topic) == (read(text).external_id, read(text).topic)


def test_an_edit_has_a_key_of_its_own() -> None:
    changed = {"type": "message", "user": "U7", "text": f"<@{BOT}> helo", "ts": "4.000005", "edited": {"ts": "9.0"}}
    edit = read("", subtype="message_changed", message=changed)
    assert (edit.event, edit.external_id, edit.provider_id) == ("edited", "slack:C9:4.000005:9.0", "4.000005")
    assert edit.addressed
    assert edit.topic == "4.000005"


@pytest.mark.parametrize(
    "fields",
    [
        {"user": BOT},
        {"subtype": "message_deleted"},
        {"subtype": "channel_join"},
        {"type": "team_join"},
        {"subtype": "message_changed", "message": {"ts": "4.5", "text": "unfurled"}},
        {"type": "reaction_added", "user": BOT, "reaction": "eyes", "event_ts": "5.1", "item": {}},
    ],
)
def test_what_the_bot_and_others_like_it_say_is_ignored(fields: dict[str, Any]) -> None:
    if fields.get("item") == {}:
        fields["item"] = {"type": "message", "channel": "C9", "ts": "4.5"}
    assert incoming_of_event(event(**fields), _BOT) is None


def test_another_bot_is_told_apart() -> None:
    assert [read(bot_id="B1").by_bot, read(bot_id="B1", subtype="bot_message").by_bot, read("hello").by_bot] == [
        True, True, False,
    ]  # fmt: skip


def test_a_reaction_names_its_message() -> None:
    item = {"type": "message", "channel": "D1", "ts": "4.5"}
    given = read(type="reaction_added", reaction="tada", event_ts="5.1", item=item)
    assert (given.text, given.event, given.reply_to, given.provider_id) == (":tada:", "reaction", "4.5", None)
    assert (given.external_id, given.conversation, given.direct) == ("slack:D1:4.5:5.1:U7", "slack:D1", True)
    assert not given.addressed
    back = read(type="reaction_removed", reaction="tada", event_ts="5.2", item=item)
    assert (back.text, back.external_id) == ("", "slack:D1:4.5:5.2:U7")
    assert incoming_of_event(event(type="reaction_added", item={"type": "file"}), _BOT) is None


def test_a_slash_command_is_a_text() -> None:
    payload = {"command": "/ask", "text": "where is <#C1|boats>?", "channel_id": "D1", "user_id": "U7"}
    payload |= {"user_name": "ann", "trigger_id": "13.1", "response_url": "https://hooks.slack.com/secret"}
    said = incoming_of_command(payload, _BOT)
    assert said is not None
    assert (said.text, said.sender, said.name) == ("/ask where is #boats?", "U7", "ann")
    assert (said.external_id, said.addressed, said.direct) == ("slack:command:13.1", True, True)
    assert said.payload is not None
    assert b"hooks.slack.com" not in said.payload


def test_what_cannot_be_read_is_kept() -> None:
    said = read(channel=None)
    assert (said.event, said.external_id, said.account) == ("unreadable", "slack:update:Ev1", ACCOUNT)
    assert said.payload is not None
    assert json.loads(said.payload)["event"]["text"] == "hello"
    command = incoming_of_command({"command": "/ask"}, _BOT)
    assert command is not None
    assert command.event == "unreadable"
    odd = incoming_of_event({"type": "event_callback", "event": [1]}, _BOT)
    assert odd is not None
    assert (odd.event, str(odd.external_id)[:11]) == ("unreadable", "slack:body:")
    assert incoming_of_event({"event": 7}, _BOT) is None


class _Posting:
    """A hook, and Slack that signs what is posted to it."""

    def __init__(self, slack: SlackServer) -> None:
        self.clock = VirtualClock()
        self.api = api_of(slack)
        self.hook = SlackHook(SlackAccount(self.api, ACCOUNT), SECRET, self.clock)

    async def post(self, body: bytes, **headers: str) -> Incoming | HookAnswer | None:
        told = {**signed(body, self.clock.now_ms()), **headers}
        await self.hook.prepare(told, body)
        return self.hook.read(told, body)


async def test_what_slack_signed_is_read() -> None:
    async with SlackServer() as slack:
        posting = _Posting(slack)
        body = json.dumps(event(f"<@{BOT}> hello")).encode()
        said = await posting.post(body)
        assert isinstance(said, Incoming)
        assert (said.text, said.addressed) == (f"@{BOT} hello", True)
        answer = await posting.post(url_verification("3eZbrw1aB"))
        assert answer == HookAnswer(b"3eZbrw1aB", "text/plain; charset=utf-8")
        form = urlencode({"command": "/ask", "text": "a b", "channel_id": "C1", "user_id": "U7", "trigger_id": "1.1"})
        command = await posting.post(form.encode(), **_FORM)
        assert isinstance(command, Incoming)
        assert command.text == "/ask a b"
        assert await posting.post(urlencode({"payload": "{}"}).encode(), **_FORM) is None
        assert await posting.post(b'{"type": "app_rate_limited"}') is None
        assert slack.calls == {"auth.test": 1}
        await posting.api.close()


async def test_what_slack_did_not_sign_is_refused() -> None:
    body = json.dumps(event()).encode()
    async with SlackServer() as slack:
        posting = _Posting(slack)
        clock, hook = posting.clock, posting.hook
        await hook.prepare(good := signed(body, clock.now_ms()), body)
        wrong = [
            {},
            {**good, "x-slack-signature": ""},
            {**good, "x-slack-signature": "v0=" + "0" * 64},
            {**good, "x-slack-signature": "v0=\udce9"},
            signed(body, clock.now_ms(), "another secret"),
            signed(body + b" ", clock.now_ms()),
            {**good, "x-slack-request-timestamp": str(clock.now_ms() // 1_000 + 1)},
            {**good, "x-slack-request-timestamp": "now"},
            {**good, "x-slack-request-timestamp": "²"},
            signed(body, clock.now_ms() - 301_000),
            signed(body, clock.now_ms() + 302_000),
        ]
        for headers in wrong:
            with pytest.raises(Forged):
                await hook.prepare(headers, body)
            with pytest.raises(Forged) as caught:
                hook.read(headers, body)
            assert SECRET not in str(caught.value)
        assert isinstance(hook.read(signed(body, clock.now_ms() - 299_000), body), Incoming)
        await clock.advance(302_000)
        with pytest.raises(Forged):
            await hook.prepare(good, body)
        assert slack.calls == {"auth.test": 1}
        await posting.api.close()


async def test_a_body_that_cannot_be_read_is_kept() -> None:
    async with SlackServer() as slack:
        posting = _Posting(slack)
        keys = set()
        for body in (b"[1]", b"not json", b"\xff\xfe"):
            said = await posting.post(body)
            assert isinstance(said, Incoming)
            assert (said.event, said.payload) == ("unreadable", body)
            keys.add(said.external_id)
        assert len(keys) == 3
        odd = await posting.post(b"\xff\xfe", **_FORM)
        assert isinstance(odd, Incoming)
        assert odd.event == "unreadable"
        await posting.api.close()


async def test_while_slack_does_not_know_the_bot_it_posts_again() -> None:
    body = json.dumps(event()).encode()
    async with SlackServer() as slack:
        posting = _Posting(slack)
        slack.errors["auth.test"] = SlackError("internal_error", 500)
        with pytest.raises(ChannelError, match="does not say who its bot is"):
            await posting.post(body)
        answer = await posting.post(url_verification("3eZbrw1aB"))
        assert isinstance(answer, HookAnswer)
        slack.errors.clear()
        other = SlackHook(SlackAccount(posting.api, "T0TEAM:U0OTHER"), SECRET, posting.clock)
        with pytest.raises(ChannelError):
            await other.prepare(signed(body, posting.clock.now_ms()), body)
        await posting.api.close()


async def test_the_token_of_the_app_opens_sockets_and_that_of_the_bot_does_not() -> None:
    async with SlackServer() as slack:
        api = SlackApi(slack.bot_token, slack.bot_token, slack.url)
        with pytest.raises(Exception, match="not_allowed_token_type"):
            await api.call("apps.connections.open", {}, by_app=True)
        await api.close()


async def test_the_line_of_a_hook_says_whether_the_token_is_accepted() -> None:
    clock, shown = VirtualClock(), LineLog()
    async with SlackServer() as slack:
        api = api_of(slack)
        calls = SlackCalls(SlackAccount(api, ACCOUNT), SlackLine(clock, shown))
        listening = asyncio.create_task(calls.listen(MemoryInbox()))
        await shown.until_now(LineState.UP)
        slack.errors["auth.test"] = SlackError("token_revoked")
        await clock.advance(300_000)
        assert "token_revoked" in await shown.until_now(LineState.REFUSED)
        slack.errors.clear()
        await clock.advance(60_000)
        await shown.until_now(LineState.UP)
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        await api.close()
