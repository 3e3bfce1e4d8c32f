"""Slack: what is sent arrives once, in its thread, and notifies nobody; the result of every refusal."""

from __future__ import annotations

import json

import pytest
from tests.unit.slack_cast import api_of, channel_of, lane_in, reply_of

from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.channels.slack import SlackChannel
from keepsaid.adapters.channels.slack_api import SlackApi, SlackUnreachable
from keepsaid.adapters.channels.slack_line import SlackAccount
from keepsaid.adapters.channels.slack_markdown import escaped, markdown_parts, plain_parts
from keepsaid.adapters.channels.slack_setup import look_up
from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import PartedChannel, PreviewChannel
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.mischief import Mischief, mischief_of, one_after_the_other
from keepsaid.testing.providers.slack import ACCOUNT, BOT, SlackError, SlackServer

_REPEAT = "(may be a repeat)\n\n"
_POST = "chat.postMessage"


async def part_of(channel: SlackChannel, reply: StoredReply, *, is_repeat: bool = False) -> ReplyPart:
    """The only part of a short reply."""
    [body] = await channel.split(reply)
    return ReplyPart(reply.id, 0, body, possible_duplicate=is_repeat)


async def sent_once(channel: SlackChannel, text: str, *, is_repeat: bool = False) -> SendResult:
    reply = reply_of(text)
    return await channel.send_part(reply, await part_of(channel, reply, is_repeat=is_repeat))


async def test_an_answer_goes_to_its_thread_with_the_key_of_its_part() -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        assert isinstance(channel, PartedChannel)
        assert isinstance(channel, PreviewChannel)
        root = slack.say("hello")
        reply = reply_of("**yes**", lane_in("C1", root), number=255)
        result = await channel.send_part(reply, await part_of(channel, reply))
        [message] = slack.sent
        assert result == SendResult(Delivered.CONFIRMED, "", message.ts)
        assert (message.channel, message.thread, message.text, message.key) == ("C1", root, "**yes**", "kff.0")
        assert message.parameters["metadata"]["event_type"] == "keepsaid_reply"
        assert message.parameters["reply_broadcast"] == "false"


async def test_a_direct_message_is_answered_flat() -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        assert (await channel.send(reply_of("yes", lane_in("D1")))).outcome is Delivered.CONFIRMED
        [message] = slack.sent
        assert (message.channel, message.thread) == ("D1", None)
        assert "reply_broadcast" not in message.parameters


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!channel> look", "&lt;!channel> look"),
        ("`<!here>` and <@U7> in <#C1>", "`&lt;!here>` and &lt;@U7> in &lt;#C1>"),
        ("a < b && c > d, <https://x.org>", "a < b && c > d, <https://x.org>"),
        ("write &lt;!channel&gt; so", "write &amp;lt;!channel&amp;gt; so"),
        ("> a quote", "> a quote"),
    ],
)
def test_no_text_notifies_anybody(text: str, shown: str) -> None:
    assert escaped(text) == shown
    [plain] = plain_parts(shown)
    assert "<" not in plain
    assert plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


def test_a_long_text_is_cut_and_its_blocks_of_code_are_closed_and_opened_again() -> None:
    code = "\n".join(f"print({n})" for n in range(2_000))
    text = f"Before\n\n```python\n{code}\n```\n\nAfter <!channel>" + " word" * 3_000
    parts = [*markdown_parts(text)]
    assert len(parts) > 2
    assert all(len(part) <= 11_000 for part in parts)
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert parts[1].startswith("```python\nprint(")
    assert words("\n".join(parts).replace("&lt;", "<")) == words(text)


def words(markdown: str) -> list[str]:
    """The words of a text, without the fences of its blocks of code."""
    return [word for word in markdown.split() if not word.startswith("```")]


@pytest.mark.parametrize("text", ["<" * 30_000, "&lt;" * 9_000, "```" * 9_000, "~~~\n" * 9_000, "😀" * 12_000])
def test_a_hostile_text_is_cut_too(text: str) -> None:
    parts = [*markdown_parts(text)]
    assert all(0 < len(part) <= 11_000 for part in parts)
    assert sum(len(part) for part in parts) >= len(text)


async def test_a_long_answer_goes_in_parts() -> None:
    long = "\n\n".join(f"**Point {n}** " + "word " * 500 for n in range(10))
    async with SlackServer() as slack, channel_of(slack) as channel:
        reply = reply_of(long)
        assert (await channel.send(reply)).outcome is Delivered.CONFIRMED
        assert len(slack.sent) >= 3
        assert "".join(one.text for one in slack.sent).count("word") == 5_000
        assert [one.key for one in slack.sent] == [f"k1.{n}" for n in range(len(slack.sent))]
        assert await channel.split(reply_of(" \n")) == [json.dumps({**_PLACE, "markdown_text": "(no words)"})]


_PLACE = {"channel": "C1", "unfurl_links": False, "unfurl_media": False}
_OUTCOMES = [
    (SlackError("channel_not_found"), Delivered.DEAD, False, "nothing is sent elsewhere"),
    (SlackError("is_archived"), Delivered.DEAD, False, "archived"),
    (SlackError("not_in_channel"), Delivered.DEAD, False, "invite it"),
    (SlackError("restricted_action_thread_only_channel"), Delivered.DEAD, False, "does not let the bot write"),
    (SlackError("something_new"), Delivered.DEAD, False, "something_new"),
    (SlackError("invalid_auth"), Delivered.RETRY, True, "slack.bot_token"),
    (SlackError("token_revoked"), Delivered.RETRY, True, "slack.bot_token"),
    (SlackError("missing_scope"), Delivered.RETRY, True, "scope"),
    (SlackError("ratelimited"), Delivered.RETRY, True, "rate limit"),
    (SlackError("service_unavailable", 503, 30), Delivered.RETRY, True, "rate limit"),
    (SlackError("fatal_error"), Delivered.DOUBT, False, "fatal_error"),
    (SlackError("internal_error", 500), Delivered.DOUBT, False, "internal_error"),
    (SlackError("msg_too_long"), Delivered.DEAD, False, "msg_too_long"),
    (SlackError("invalid_blocks"), Delivered.DEAD, False, "invalid_blocks"),
]


@pytest.mark.parametrize(("error", "outcome", "outage", "detail"), _OUTCOMES)
async def test_each_error_has_its_outcome(error: SlackError, outcome: Delivered, outage: bool, detail: str) -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        slack.errors["C1"] = error
        result = await sent_once(channel, "hello")
        assert (result.outcome, result.outage) == (outcome, outage)
        assert detail in result.detail
        assert slack.bot_token not in result.detail
        assert not slack.sent


async def test_a_rate_limit_is_waited_out_whole() -> None:
    clock = VirtualClock()
    async with SlackServer() as slack, channel_of(slack, clock) as channel:
        slack.errors["C1"] = SlackError("ratelimited", 429, 30)
        result = await sent_once(channel, "hello")
        assert result.retry_after_ms is not None
        assert 30_000 <= result.retry_after_ms <= 33_000
        slack.errors.clear()
        assert (await sent_once(channel, "hello")).outcome is Delivered.RETRY
        assert slack.calls[_POST] == 1
        await clock.advance(33_001)
        assert (await sent_once(channel, "hello")).outcome is Delivered.CONFIRMED


@pytest.mark.parametrize("act", [Mischief.RESET_AFTER, Mischief.FAIL_AFTER, Mischief.GARBLE])
async def test_a_message_that_arrived_is_found_and_not_sent_again(act: Mischief) -> None:
    async with SlackServer(one_after_the_other(act, method=_POST)) as slack, channel_of(slack) as channel:
        slack.history.page_max = 2
        assert (await sent_once(channel, "hello")).outcome is Delivered.DOUBT
        [message] = slack.sent
        for _ in range(5):
            slack.say("chatter")
        result = await sent_once(channel, "hello", is_repeat=True)
        assert result == SendResult(Delivered.CONFIRMED, "it had arrived", message.ts)
        assert len(slack.sent) == 1


async def test_a_message_in_a_thread_is_found_there_and_not_by_the_metadata_of_others() -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        root = slack.say("hello")
        reply = reply_of("yes", lane_in("C1", root))
        part = await part_of(channel, reply, is_repeat=True)
        forged = {"event_type": "keepsaid_reply", "event_payload": {"key": part.key}}
        slack.say("yes", thread=root, metadata=forged)
        assert (await channel.send_part(reply, part)).outcome is Delivered.CONFIRMED
        assert [one.text for one in slack.sent] == [f"{_REPEAT}yes"]
        assert (await channel.send_part(reply, part)).detail == "it had arrived"
        assert len(slack.sent) == 1
        assert slack.calls["conversations.replies"] == 2


async def test_a_message_that_did_not_arrive_is_sent_again_and_says_so() -> None:
    async with SlackServer(one_after_the_other(Mischief.FAIL, method=_POST)) as slack, channel_of(slack) as channel:
        slack.say("hello")
        assert (await sent_once(channel, "yes")).outcome is Delivered.DOUBT
        assert (await sent_once(channel, "yes", is_repeat=True)).outcome is Delivered.CONFIRMED
        assert [one.text for one in slack.sent] == [f"{_REPEAT}yes"]


async def test_nothing_is_sent_again_while_nobody_can_look() -> None:
    """Unless the app may not read there: then nobody ever can."""
    async with SlackServer() as slack, channel_of(slack) as channel:
        slack.errors["conversations.history"] = SlackError("ratelimited", 429, 7)
        result = await sent_once(channel, "yes", is_repeat=True)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        slack.errors["conversations.history"] = SlackError("internal_error", 500)
        assert (await sent_once(channel, "yes", is_repeat=True)).outcome is Delivered.RETRY
        assert not slack.sent
        slack.errors["conversations.history"] = SlackError("missing_scope")
        result = await sent_once(channel, "yes", is_repeat=True)
        assert result.outcome is Delivered.CONFIRMED
        assert "missing_scope" in result.detail
        assert [one.text for one in slack.sent] == [f"{_REPEAT}yes"]


async def test_where_markdown_is_refused_plain_texts_are_sent_and_none_of_them_twice() -> None:
    """The second text gets lost, and the answer to the third: only what did not arrive is sent again."""
    acts = (Mischief.ACCEPT, Mischief.ACCEPT, Mischief.SLOW_DOWN)
    trouble = one_after_the_other(*acts, Mischief.ACCEPT, Mischief.RESET_AFTER, method=_POST)
    text = "<!channel> & " + "word " * 2_000
    async with SlackServer(trouble) as slack, channel_of(slack, clock := VirtualClock()) as channel:
        slack.takes_markdown = False
        first = await sent_once(channel, text)
        assert (first.outcome, len(slack.sent)) == (Delivered.DOUBT, 1)
        await clock.advance(2_000)
        second = await sent_once(channel, text, is_repeat=True)
        assert (second.outcome, len(slack.sent)) == (Delivered.DOUBT, 3)
        third = await sent_once(channel, text, is_repeat=True)
        assert third.outcome is Delivered.CONFIRMED
        assert third.provider_id == slack.sent[0].ts
        texts = [one.text for one in slack.sent]
        assert all(len(one) <= 4_000 for one in texts)
        assert texts[0].startswith("&lt;!channel&gt; &amp; word")
        assert texts[1].startswith(_REPEAT)
        assert not texts[2].startswith(_REPEAT)
        assert "".join(texts).count("word") == 2_000


async def test_what_is_refused_as_markdown_says_so() -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        slack.takes_markdown = False
        result = await sent_once(channel, "hello")
        assert result.detail == "sent as plain text: invalid_arguments"
        assert slack.sent[0].parameters["parse"] == "none"


async def test_that_somebody_types_is_shown_in_threads_of_the_assistant_alone() -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        assert await channel.show_typing(lane_in("D1", "5.000001"))
        assert slack.statuses == [{"channel_id": "D1", "thread_ts": "5.000001", "status": "is typing..."}]
        assert not await channel.show_typing(lane_in("D1"))
        assert not await channel.show_typing(lane_in("C1", "5.000001"))
        assert not await channel.show_draft(lane_in("D1", "5.000001"), 1, "so far")
        slack.errors["assistant.threads.setStatus"] = SlackError("channel_not_found")
        assert not await channel.show_typing(lane_in("D1", "5.000001"))
        assert len(slack.statuses) == 1
        assert not slack.sent


async def test_a_reply_of_another_account_is_refused() -> None:
    async with SlackServer() as slack, channel_of(slack) as channel:
        result = await channel.send(reply_of("yes", lane_in("C1", account="T0TEAM:U0OTHER")))
        assert result.outcome is Delivered.REFUSED
        assert not slack.calls


async def test_an_account_that_is_not_configured_is_looked_up() -> None:
    async with SlackServer() as slack:
        api = api_of(slack)
        channel = SlackChannel(SlackAccount(api), SendingPace(VirtualClock(), Rate(0.0), Rate(0.0)))
        slack.errors["auth.test"] = SlackError("internal_error", 500)
        result = await channel.send(reply_of("yes"))
        assert (result.outcome, result.outage, slack.sent) == (Delivered.RETRY, True, [])
        slack.errors.clear()
        assert (await channel.send(reply_of("yes"))).outcome is Delivered.CONFIRMED
        assert channel.account == ACCOUNT
        await channel.close()


async def test_a_slack_that_cannot_be_reached_costs_no_try_and_shows_no_token() -> None:
    api = SlackApi("xoxb-secret", "xapp-secret", "http://127.0.0.1:9/xoxb-secret")
    channel = SlackChannel(SlackAccount(api, ACCOUNT), SendingPace(VirtualClock(), Rate(0.0), Rate(0.0)))
    result = await channel.send(reply_of("yes"))
    assert (result.outcome, result.outage) == (Delivered.RETRY, True)
    assert "secret" not in result.detail
    with pytest.raises(SlackUnreachable) as caught:
        await api.call("auth.test", {"a": "\ud800"})
    assert "secret" not in str(caught.value)
    await channel.close()


@pytest.mark.parametrize("seed", range(8))
async def test_nothing_is_lost_and_no_repeat_is_unmarked(seed: int) -> None:
    """Ten answers while requests fail in every way: each arrives, and what comes twice says so."""
    clock = VirtualClock()
    async with SlackServer(mischief_of(seed, 0.4), now_ms=clock.now_ms) as slack, channel_of(slack, clock) as channel:
        slack.say("hello")
        for number in range(1, 11):
            reply = reply_of(f"answer {number}", number=number, tried_from=clock.now_ms())
            in_doubt = False
            for _ in range(60):
                part = await part_of(channel, reply, is_repeat=in_doubt)
                result = await channel.send_part(reply, part)
                if result.outcome is Delivered.CONFIRMED:
                    break
                in_doubt |= result.outcome is Delivered.DOUBT
                assert result.outcome is not Delivered.DEAD
                await clock.advance(result.retry_after_ms or 1_000)
            texts = [one.text for one in slack.sent if one.key == f"k{number:x}.0"]
            assert texts
            assert result.outcome is Delivered.CONFIRMED
            assert texts.count(f"answer {number}") <= 1
            assert {text.removeprefix(_REPEAT) for text in texts} == {f"answer {number}"}
            assert len(texts) == 1


async def test_the_account_is_looked_up_by_both_tokens() -> None:
    async with SlackServer() as slack:
        report = await look_up(SlackApi(slack.bot_token, slack.app_token, slack.url))
        assert (report.channel, report.account, report.name) == ("slack", f"T0TEAM:{BOT}", "@keepsaid")
        assert report.notes == ()
        [note] = (await look_up(SlackApi(slack.bot_token, "", slack.url))).notes
        assert "signing_secret" in note
        for tokens, setting in ((("xoxb-1", slack.app_token), "bot_token"), ((slack.bot_token, "xapp-1"), "app_token")):
            with pytest.raises(ChannelError) as caught:
                await look_up(SlackApi(*tokens, slack.url))
            assert f"slack.{setting}: invalid_auth" in caught.value.what
            assert "xoxb-1" not in str(caught.value)
    with pytest.raises(ChannelError, match="cannot be reached"):
        await look_up(SlackApi("xoxb-1", "", "http://127.0.0.1:9"))
