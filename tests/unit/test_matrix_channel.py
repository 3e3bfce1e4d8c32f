"""Answering at Matrix: parts, HTML, threads, transactions, repeats, refusals, typing, and the account of a token."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from typing import Any

import pytest
from tests.unit.matrix_cast import ANN, BEGAN_MS, BOB, ROOM, api_of, channel_of, lane_in, reply_of, server

from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, MatrixUnreachable
from keepsaid.adapters.channels.matrix.html import BYTES_MAX, matrix_texts
from keepsaid.adapters.channels.matrix.setup import look_up
from keepsaid.domain.reply import Delivered
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import MAY_SEND
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.matrix import TOKEN, MatrixServer
from keepsaid.testing.providers.matrix_rooms import USER, MatrixError
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other


def first(*acts: Mischief, method: str = "send") -> MatrixServer:
    """A homeserver with a room, that does something wrong with the first requests of a method."""
    matrix = server(mischief=one_after_the_other(*acts, method=method))
    matrix.room(ROOM, ANN, BOB)
    return matrix


async def test_a_reply_is_sent_with_html_and_without_mentions() -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        result = await channel.send(reply_of("**@room** <b> & `x`", reply_to="$0"))
    (sent,) = matrix.sent
    assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, sent.number)
    assert (sent.room, sent.txn, sent.body) == (ROOM, "k1.0", "@room <b> & x")
    assert sent.content["formatted_body"] == "<strong>@room</strong> &lt;b&gt; &amp; <code>x</code>"
    assert sent.content["m.mentions"] == {}
    assert sent.content["m.relates_to"] == {"m.in_reply_to": {"event_id": "$0"}}


async def test_a_reply_to_a_direct_message_has_no_anchor() -> None:
    async with server() as matrix, channel_of(matrix) as channel:
        matrix.room(ROOM, ANN)
        await channel.send(reply_of("hi", reply_to="$0"))
    assert "m.relates_to" not in matrix.sent[0].content


async def test_a_reply_in_a_thread_stays_there() -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        await channel.send(reply_of("hi", lane_in(thread="$root"), reply_to="$0"))
    assert matrix.sent[0].content["m.relates_to"] == {
        "rel_type": "m.thread",
        "event_id": "$root",
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": "$0"},
    }


@pytest.mark.parametrize("act", [Mischief.RESET_AFTER, Mischief.FAIL_AFTER, Mischief.GARBLE])
async def test_a_repeat_is_the_same_transaction_and_one_message(act: Mischief) -> None:
    async with first(act) as matrix, channel_of(matrix) as channel:
        reply = reply_of("hi", tried_from=BEGAN_MS)
        (body,) = await channel.split(reply)
        result = await channel.send_part(reply, ReplyPart(1, 0, body))
        assert result.outcome is Delivered.DOUBT
        result = await channel.send_part(reply, ReplyPart(1, 0, body, possible_duplicate=True))
    assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, matrix.sent[0].number)
    assert [one.body for one in matrix.sent] == ["hi"]


@pytest.mark.parametrize("is_new_device", [True, False])
async def test_a_repeat_by_another_device_or_much_later_is_found_first(is_new_device: bool) -> None:
    clock = VirtualClock(BEGAN_MS)
    async with first(Mischief.RESET_AFTER) as matrix, channel_of(matrix, clock) as channel:
        reply = reply_of("hi", tried_from=BEGAN_MS)
        (body,) = await channel.split(reply)
        assert (await channel.send_part(reply, ReplyPart(1, 0, body))).outcome is Delivered.DOUBT
        if is_new_device:
            matrix.device = "OTHER"
            channel._bot.forget()
        else:
            matrix.forgets_transactions = True
            await clock.advance(3_600_000)
        result = await channel.send_part(reply, ReplyPart(1, 0, body, possible_duplicate=True))
    assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, matrix.sent[0].number)
    assert len(matrix.sent) == 1


async def test_a_repeat_that_is_not_found_is_marked() -> None:
    clock = VirtualClock(BEGAN_MS)
    async with first() as matrix, channel_of(matrix, clock) as channel:
        reply = reply_of("**hi**", tried_from=BEGAN_MS)
        (body,) = await channel.split(reply)
        await clock.advance(3_600_000)
        for n in range(150):
            matrix.say(f"{n}")
        result = await channel.send_part(reply, ReplyPart(1, 0, body, possible_duplicate=True))
    assert result.outcome is Delivered.CONFIRMED
    assert matrix.sent[0].body == "(may be a repeat)\nhi"
    assert matrix.sent[0].content["formatted_body"] == "(may be a repeat)<br><strong>hi</strong>"


async def test_a_repeat_waits_while_nobody_can_look() -> None:
    async with first(Mischief.FAIL, Mischief.DROP, method="messages") as matrix, channel_of(matrix) as channel:
        reply = reply_of("hi", tried_from=BEGAN_MS - 3_600_000)
        (body,) = await channel.split(reply)
        result = await channel.send_part(reply, ReplyPart(1, 0, body, possible_duplicate=True))
    assert (result.outcome, result.outage, matrix.sent) == (Delivered.RETRY, True, [])


@pytest.mark.parametrize(
    ("act", "tries"),
    [(Mischief.FAIL, 2), (Mischief.DROP, 2), (Mischief.GARBLE, 2), (Mischief.RESET_AFTER, 2), (Mischief.SLOW_DOWN, 1)],
)
async def test_what_only_reads_is_asked_once_more_where_no_answer_came(act: Mischief, tries: int) -> None:
    """Not where the server asks to wait, and not what changes something: a second time may do it twice."""
    seen: list[str] = []

    def decide(method: str, _number: int) -> Mischief:
        seen.append(method)
        return act

    async with server(mischief=decide) as matrix:
        matrix.room(ROOM, ANN, BOB)
        api = MatrixApi(TOKEN, matrix.url)
        for method, path in (("GET", f"/rooms/{ROOM}/state"), ("POST", "/keys/query"), ("POST", f"/join/{ROOM}")):
            with pytest.raises((MatrixRefused, MatrixUnreachable)):
                await api.call(method, path, None if method == "GET" else {"device_keys": {}})
        with pytest.raises((MatrixRefused, MatrixUnreachable)):
            await api.call("GET", "/sync")
        await api.close()
    assert Counter(seen) == {"state": tries, "keys/query": tries, "join": 1, "sync": 1}


@pytest.mark.parametrize(
    ("status", "code", "outcome", "outage"),
    [
        (429, "M_LIMIT_EXCEEDED", Delivered.RETRY, True),
        (401, "M_UNKNOWN_TOKEN", Delivered.RETRY, True),
        (403, "M_USER_LOCKED", Delivered.RETRY, True),
        (403, "M_RESOURCE_LIMIT_EXCEEDED", Delivered.RETRY, True),
        (403, "M_FORBIDDEN", Delivered.DEAD, False),
        (404, "M_NOT_FOUND", Delivered.DEAD, False),
        (400, "M_BAD_JSON", Delivered.DEAD, False),
        (404, "", Delivered.RETRY, True),
        (500, "M_UNKNOWN", Delivered.DOUBT, False),
        (502, "", Delivered.DOUBT, False),
        (504, "", Delivered.DOUBT, False),
    ],
)
async def test_each_refusal_has_its_outcome(status: int, code: str, outcome: Delivered, outage: bool) -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        matrix.refusals[ROOM] = MatrixError(status, code)
        result = await channel.send(reply_of("hi"))
    assert (result.outcome, result.outage) == (outcome, outage)
    assert result.detail


async def test_a_server_that_is_not_there_costs_no_try() -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        reply = reply_of("hi")
        (body,) = await channel.split(reply)
        await matrix.__aexit__(None, None, None)
        result = await channel.send_part(reply, ReplyPart(1, 0, body))
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        channel._bot.forget()
        result = await channel.send(reply)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert matrix.token not in result.detail


async def test_a_rate_limit_holds_the_account() -> None:
    clock = VirtualClock(BEGAN_MS)
    async with first() as matrix, channel_of(matrix, clock) as channel:
        matrix.refusals[ROOM] = MatrixError(429, "M_LIMIT_EXCEEDED", retry_after_ms=30_000)
        result = await channel.send(reply_of("hi"))
        assert result.retry_after_ms is not None
        assert 30_000 <= result.retry_after_ms <= 33_000
        matrix.room("!other:test", ANN)
        held = await channel.send(reply_of("hi", lane_in("!other:test")))
        assert (held.outcome, held.outage) == (Delivered.RETRY, True)
        del matrix.refusals[ROOM]
        await clock.advance(33_000)
        assert (await channel.send(reply_of("hi"))).outcome is Delivered.CONFIRMED


async def test_a_form_that_is_refused_is_sent_as_plain_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        kept = matrix._send

        def picky(room: str, kind: str, txn: str, content: dict[str, Any]) -> dict[str, Any]:
            if "formatted_body" in content:
                raise MatrixError(400, "M_BAD_JSON", "no HTML")
            return kept(room, kind, txn, content)

        monkeypatch.setattr(matrix, "_send", picky)
        result = await channel.send(reply_of("**hi**"))
    assert result.outcome is Delivered.CONFIRMED
    assert "plain text" in result.detail
    assert matrix.sent[0].body == "hi"


async def test_nothing_is_sent_to_an_encrypted_room() -> None:
    async with server() as matrix, channel_of(matrix) as channel:
        matrix.room(ROOM, ANN, encryption="m.megolm.v1.aes-sha2")
        result = await channel.send(reply_of("secret"))
    assert (result.outcome, matrix.sent) == (Delivered.DEAD, [])
    assert "encrypted" in result.detail


async def test_a_reply_of_another_account_or_to_no_room_is_not_sent() -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        assert (await channel.send(reply_of("hi", lane_in(account="@x:test")))).outcome is Delivered.REFUSED
        assert (await channel.send(reply_of("hi", lane_in("../x")))).outcome is Delivered.DEAD
        assert (await channel.send(reply_of("hi", lane_in("!gone:test")))).outcome is Delivered.DEAD
    assert not matrix.sent


async def test_a_process_that_was_stopped_sends_nothing() -> None:
    token = MAY_SEND.set(lambda: False)
    try:
        async with first() as matrix, channel_of(matrix) as channel:
            result = await channel.send(reply_of("hi"))
    finally:
        MAY_SEND.reset(token)
    assert (result.outcome, result.outage, matrix.sent) == (Delivered.RETRY, True, [])


async def test_typing_is_shown_and_a_draft_is_not() -> None:
    async with first() as matrix, channel_of(matrix) as channel:
        assert not await channel.show_typing(lane_in())
        await channel.split(reply_of("hi"))
        assert await channel.show_typing(lane_in())
        assert not await channel.show_typing(lane_in("!gone:test"))
        assert not await channel.show_typing(lane_in(account="@x:test"))
        assert not await channel.show_draft(lane_in(), 1, "x")
    assert matrix.typing == [{"room": ROOM, "typing": True, "timeout": 30_000}]


async def test_a_long_reply_is_sent_in_parts_of_30_kilobytes() -> None:
    text = "\n\n".join(f'{n} **bold** "quoted" <x> & `code` é 😀' for n in range(3_000))
    async with first() as matrix, channel_of(matrix) as channel:
        assert (await channel.send(reply_of(text, reply_to="$0"))).outcome is Delivered.CONFIRMED
    assert len(matrix.sent) > 5
    assert all(len(json.dumps(one.content, ensure_ascii=False).encode()) < BYTES_MAX + 1_000 for one in matrix.sent)
    assert "".join(one.body for one in matrix.sent) == read_markdown(text).text
    assert [one.txn for one in matrix.sent] == [f"k1.{n}" for n in range(len(matrix.sent))]
    assert [n for n, one in enumerate(matrix.sent) if "m.relates_to" in one.content] == [0]


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("a\nb", ""),
        ("*a* ~~b~~", "<em>a</em> <del>b</del>"),
        ("**a *b* c**", "<strong>a <em>b</em> c</strong>"),
        ("> a\n> b\n\nc", "<blockquote>a<br>b</blockquote>c"),
        ("x\n\n```py\n<a>\nb\n```\n\ny", 'x<pre><code class="language-py">&lt;a&gt;\nb</code></pre>y'),
        ('[a](https://x.test/?a=1&b="2")', '<a href="https://x.test/?a=1&amp;b=%222%22">a</a>'),
        ("[a](matrix:r/x)", "a (matrix:r/x)"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
        ("<script>alert(1)</script> **x**", "&lt;script&gt;alert(1)&lt;/script&gt; <strong>x</strong>"),
    ],
)
def test_markdown_becomes_html_in_which_everything_is_escaped(markdown: str, html: str) -> None:
    (text,) = matrix_texts(markdown)
    assert text.html == html


@pytest.mark.parametrize("seed", range(12))
def test_parts_joined_are_the_whole_text_and_none_is_too_long(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        "**",
        "*",
        "`",
        "```\n",
        "\n",
        "> ",
        "- ",
        "[x](https://a.test)",
        "é",
        "😀",
        "\x01",
        '"',
        "&",
        "word ",
        "\ud800",
    ]
    text = "".join(chance.choice(pieces) * chance.choice([1, 1, 1, 50, 700]) for _ in range(200))
    whole = read_markdown(text.encode("utf-8", "replace").decode()).text
    parts = matrix_texts(text)
    assert whole.strip() == "" or "".join(one.body for one in parts) == whole
    for one in parts:
        raw = json.dumps({"b": one.body, "f": one.html}, ensure_ascii=False).encode()
        assert len(raw) <= BYTES_MAX + 100


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_a_reply_without_words_says_so(text: str) -> None:
    assert [one.body for one in matrix_texts(text)] == ["(no words)"]


@pytest.mark.parametrize(
    "text", ["*" * 100_000, "<" * 100_000, "> " * 50_000, "`" * 99_999, "**a** " * 20_000, "[" * 50_000]
)
def test_a_text_is_split_in_linear_time(text: str) -> None:
    began = time.process_time()
    matrix_texts(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("token", ["two words", "first\nsecond", "\ud800"])
async def test_a_token_that_is_none_is_never_shown(token: str) -> None:
    with pytest.raises(ChannelError) as caught:
        await look_up(MatrixApi(token, "http://127.0.0.1:9"))
    assert not any(word in caught.value.what.split() for word in token.split())


async def test_look_up_names_the_account_and_what_its_owner_should_know() -> None:
    async with first() as matrix:
        matrix.room("!vault:test", ANN, encryption="m.megolm.v1.aes-sha2")
        report = await look_up(api_of(matrix), "BEFORE")
        assert (report.channel, report.account, report.name) == ("matrix", USER, "Bot")
        assert any("from BEFORE to SCRIPTED" in note for note in report.notes)
        assert any("!vault:test" in note for note in report.notes)
        assert not any("device" in note for note in (await look_up(api_of(matrix), "SCRIPTED")).notes)
        matrix.device = ""
        assert any("no device" in note for note in (await look_up(api_of(matrix))).notes)


async def test_look_up_says_what_to_do_about_a_refused_token_or_a_server_that_is_not_there() -> None:
    async with server() as matrix:
        api = api_of(matrix)
        matrix.token = "another"
        with pytest.raises(ChannelError, match=r"refuses matrix\.token"):
            await look_up(api)
    with pytest.raises(ChannelError, match="cannot be reached") as caught:
        await look_up(api)
    assert caught.value.hint
