"""Files out on Slack: nothing is doubted before a file is shared, and what the app may not upload is named in words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.slack_cast import channel_of, lane_in, reply_of

from keepsaid.domain.message import Lane
from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.slack import SlackError, SlackServer
from keepsaid.testing.sending_contract import tried

_CONTENT = b"# Notes\n"
_COMPLETE, _NAME = "files.completeUploadExternal", "files.getUploadURLExternal"
_NO_SCOPE = "the app lacks the scope files:write (OAuth & Permissions; then install it again)"
_NOT_SENT = "[notes.md could not be sent: {}]"


async def read(file: TurnFile) -> bytes | None:
    """The bytes of a file; the third is gone."""
    return None if file.number == 3 else _CONTENT


def with_files(text: str, *numbers: int, lane: Lane | None = None, name: str = "notes.md") -> StoredReply:
    """A reply with files of one name; without numbers one."""
    files = [TurnFile(1, one, name, "text/markdown", len(_CONTENT), attached=True) for one in numbers or (1,)]
    return replace(reply_of(text, lane), files=tuple(files))


def texts(slack: SlackServer) -> list[str]:
    return [one.text for one in slack.sent]


def server(mischief: Mischief | None = None, method: str = _COMPLETE) -> SlackServer:
    """A Slack whose clock is that of the replies."""
    acts = one_after_the_other(*([] if mischief is None else [mischief]), method=method)
    return SlackServer(acts, now_ms=lambda: 1_750_000_000_000)


async def test_a_file_goes_to_its_thread_with_its_name() -> None:
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        root = slack.say("write it down")
        results = await tried(channel, with_files("here you are", lane=lane_in("C1", root), name="a b \u72ac.md"))
        assert [one.outcome for one in results] == [Delivered.CONFIRMED, Delivered.CONFIRMED]
        assert [(one.channel, one.thread, one.text) for one in slack.sent] == [
            ("C1", root, "here you are"),
            ("C1", root, ""),
        ]
        [file] = slack.sent[1].files
        assert (file.name, file.content) == ("a b \u72ac.md", _CONTENT)
        assert "initial_comment" not in slack.sent[1].parameters


@pytest.mark.parametrize("method", [_NAME, "upload"])
@pytest.mark.parametrize("act", [act for act in Mischief if act not in (Mischief.ACCEPT, Mischief.GARBLE)])
async def test_what_fails_before_it_is_shared_did_not_arrive(method: str, act: Mischief) -> None:
    """It is tried again, and not marked."""
    async with server(act, method) as slack, channel_of(slack, VirtualClock(), read) as channel:
        said = with_files("")
        [result] = await tried(channel, said)
        assert (result.outcome, result.outage, slack.sent) == (Delivered.RETRY, True, [])
        [result] = await tried(channel, said)
        assert (result.outcome, texts(slack)) == (Delivered.CONFIRMED, [""])


@pytest.mark.parametrize(
    ("method", "error", "why"),
    [
        (
            _NAME,
            "missing_scope",
            f"Slack answered missing_scope: {_NO_SCOPE}",
        ),
        (
            _NAME,
            "file_upload_size_restricted",
            "Slack answered file_upload_size_restricted: the workspace takes no file so large",
        ),
        (_COMPLETE, "file_not_found", "Slack answered file_not_found"),
    ],
)
async def test_words_say_that_a_file_is_refused(method: str, error: str, why: str) -> None:
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        slack.errors[method] = SlackError(error)
        results = await tried(channel, with_files("here you are"))
        assert [one.outcome for one in results] == [Delivered.CONFIRMED, Delivered.CONFIRMED]
        assert results[1].detail == f"a file was not sent: {why}"
        assert texts(slack) == ["here you are", _NOT_SENT.format(why)]


@pytest.mark.parametrize("status", [400, 413, 302])
async def test_words_say_that_the_bytes_are_refused(status: int) -> None:
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        slack.incoming.status = status
        [result] = await tried(channel, with_files(""))
        assert result.outcome is Delivered.CONFIRMED
        assert texts(slack) == [_NOT_SENT.format(f"Slack answered {status}")]


@pytest.mark.parametrize("url", ["https://files.slack.com.evil.test", "http://files.slack.com", "ftp://[", "//"])
async def test_bytes_go_to_no_other_server(url: str) -> None:
    """A foreign address gets nothing: it is no server of Slack, or not by TLS."""
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        slack.incoming.url = url
        [result] = await tried(channel, with_files(""))
        assert result.outcome is Delivered.CONFIRMED
        [text] = texts(slack)
        assert text.startswith("[notes.md could not be sent: its address")
        assert "upload" not in slack.calls


async def test_a_token_that_is_not_accepted_keeps_the_file_waiting() -> None:
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        slack.bot_token = "another"
        [result] = await tried(channel, with_files(""))
        assert (result.outcome, result.outage, slack.sent) == (Delivered.RETRY, True, [])


async def test_a_place_that_is_gone_gets_neither_file_nor_words() -> None:
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        slack.errors["C1"] = SlackError("channel_not_found")
        [result] = await tried(channel, with_files(""))
        assert (result.outcome, slack.sent) == (Delivered.DEAD, [])


@pytest.mark.parametrize("act", [Mischief.RESET_AFTER, Mischief.FAIL_AFTER, Mischief.GARBLE])
async def test_a_file_that_was_shared_is_found(act: Mischief) -> None:
    async with server(act) as slack, channel_of(slack, VirtualClock(), read) as channel:
        said = with_files("")
        [first] = await tried(channel, said)
        [result] = await tried(channel, said, again=True)
        assert (first.outcome, result.outcome) == (Delivered.DOUBT, Delivered.CONFIRMED)
        assert (result.detail, result.provider_id) == ("it had arrived", slack.sent[0].ts)
        assert len(slack.sent) == 1


async def test_a_file_of_another_part_is_not_taken_for_it() -> None:
    """The reply has the same file twice; the second did not arrive, and its repeat is marked."""
    async with server() as slack, channel_of(slack, VirtualClock(), read) as channel:
        said = with_files("", 1, 2)
        first, second = await channel.split(said)
        await tried(channel, said, bodies=[first])
        slack.mischief = one_after_the_other(Mischief.FAIL, method=_COMPLETE)
        [doubt] = await tried(channel, said, bodies=[second])
        [result] = await tried(channel, said, again=True, bodies=[second])
        assert (doubt.outcome, result.outcome) == (Delivered.DOUBT, Delivered.CONFIRMED)
        assert texts(slack) == ["", "(may be a repeat)"]


async def test_another_process_does_not_take_an_earlier_part_for_it() -> None:
    """It does not know which files came with which parts, but how many the reply has before this one."""
    async with server() as slack:
        said = with_files("", 1, 2)
        async with channel_of(slack, VirtualClock(), read) as channel:
            first, second = await channel.split(said)
            await tried(channel, said, bodies=[first])
        async with channel_of(slack, VirtualClock(), read) as channel:
            await tried(channel, said, again=True, bodies=[second])
            assert texts(slack) == ["", "(may be a repeat)"]
        async with channel_of(slack, VirtualClock(), read) as channel:
            [result] = await tried(channel, said, again=True, bodies=[second])
        assert (result.provider_id, len(slack.sent)) == (slack.sent[1].ts, 2)


async def test_words_in_the_place_of_a_file_are_found_by_their_key() -> None:
    async with server(Mischief.RESET_AFTER, "chat.postMessage") as slack:
        async with channel_of(slack, VirtualClock(), read) as channel:
            said = with_files("", 3)
            [first] = await tried(channel, said)
            [result] = await tried(channel, said, again=True)
        assert (first.outcome, result.detail) == (Delivered.DOUBT, "it had arrived")
        assert texts(slack) == [_NOT_SENT.format("it is not kept any more")]


async def test_a_repeat_is_marked_where_the_app_may_not_read() -> None:
    async with server(Mischief.RESET_AFTER) as slack, channel_of(slack, VirtualClock(), read) as channel:
        said = with_files("")
        await tried(channel, said)
        slack.errors["conversations.history"] = SlackError("missing_scope")
        [result] = await tried(channel, said, again=True)
        assert result.detail == "nobody could look whether it had arrived: missing_scope"
        assert texts(slack) == ["", "(may be a repeat)"]
