"""slack_sdk does with the scripted Slack as a normal bot does, on the Web API and by Socket Mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.slack import APP, APP_TOKEN, BOT, BOT_ID, SECRET, TEAM, SlackError, SlackServer, signed

METADATA = {"event_type": "keepsaid_reply", "event_payload": {"key": "k1.0"}}


def web_of(slack: SlackServer, token: str = "") -> AsyncWebClient:
    """The client of the Web API."""
    return AsyncWebClient(token or slack.bot_token, base_url=f"{slack.url}/api/", retry_handlers=[])


class ListeningApp:
    """A Socket Mode client that acknowledges what it gets; `keeps_silent` holds envelopes it does not acknowledge."""

    def __init__(self, slack: SlackServer) -> None:
        self.client = SocketModeClient(APP_TOKEN, web_client=web_of(slack), ping_interval=1)
        self.client.socket_mode_request_listeners.append(self._take)
        self.silent_attempts = 0
        self._requests: asyncio.Queue[SocketModeRequest] = asyncio.Queue()

    async def next(self) -> Any:
        """The next envelope; raises TimeoutError."""
        async with asyncio.timeout(30):
            return await self._requests.get()

    async def event(self) -> dict[str, Any]:
        """The event of the next envelope."""
        return dict((await self.next()).payload["event"])

    async def _take(self, client: Any, request: Any) -> None:
        if self.silent_attempts:
            self.silent_attempts -= 1
        else:
            await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        self._requests.put_nowait(request)


@asynccontextmanager
async def listening(slack: SlackServer) -> AsyncIterator[ListeningApp]:
    """An app whose socket is open."""
    app = ListeningApp(slack)
    await app.client.connect()
    try:
        await slack.wait_for(lambda: len(slack.sockets.open_sockets) == 1)
        yield app
    finally:
        await app.client.close()


async def test_bot_and_app_log_in() -> None:
    async with SlackServer() as slack:
        me = await web_of(slack).auth_test()
        assert (me["team_id"], me["user_id"], me["bot_id"], me["user"]) == (TEAM, BOT, BOT_ID, "keepsaid")
        assert me["is_enterprise_install"] is False
        opened = await web_of(slack).apps_connections_open(app_token=APP_TOKEN)
        assert opened["url"].startswith("ws://")


async def test_wrong_token_is_refused() -> None:
    async with SlackServer() as slack:
        with pytest.raises(SlackApiError) as found:
            await web_of(slack, "xoxb-another").auth_test()
        assert found.value.response["error"] == "invalid_auth"
        with pytest.raises(SlackApiError) as wrong:
            await web_of(slack).apps_connections_open(app_token=slack.bot_token)
        assert wrong.value.response["error"] == "not_allowed_token_type"


async def test_message_and_mention_come_by_the_socket() -> None:
    async with SlackServer() as slack, listening(slack) as app:
        ts = slack.say(f"hello <@{BOT}>")
        first = await app.next()
        assert (first.type, first.accepts_response_payload, first.retry_attempt) == ("events_api", False, 0)
        assert first.payload["type"] == "event_callback"
        assert (first.payload["team_id"], first.payload["api_app_id"]) == (TEAM, APP)
        event = first.payload["event"]
        assert (event["type"], event["user"], event["text"], event["ts"]) == ("message", "U7", f"hello <@{BOT}>", ts)
        assert (event["channel"], event["channel_type"], event["event_ts"]) == ("C1", "channel", ts)
        mention = await app.event()
        assert (mention["type"], mention["ts"]) == ("app_mention", ts)
        await slack.wait_for(lambda: slack.sockets.waiting == 0)
        assert len(slack.sockets.acknowledged) == 2


async def test_direct_message_thread_edit_and_reaction_come_by_the_socket() -> None:
    async with SlackServer() as slack, listening(slack) as app:
        root = slack.say("hi", channel="D1")
        assert (await app.event())["channel_type"] == "im"
        answer = slack.say("more", channel="D1", thread=root)
        event = await app.event()
        assert (event["ts"], event["thread_ts"], event["parent_user_id"]) == (answer, root, "U7")
        changed = {"type": "message", "user": "U7", "text": "hi!", "ts": root, "edited": {"user": "U7", "ts": "2.0"}}
        slack.emit({"type": "message", "subtype": "message_changed", "channel": "D1", "message": changed, "ts": "2.0"})
        assert (await app.event())["message"]["text"] == "hi!"
        item = {"type": "message", "channel": "D1", "ts": root}
        slack.emit({"type": "reaction_added", "user": "U7", "reaction": "tada", "item": item, "event_ts": "3.0"})
        assert ((found := await app.event())["reaction"], found["item"]["ts"]) == ("tada", root)


async def test_envelope_that_is_not_acknowledged_comes_again() -> None:
    async with SlackServer() as slack, listening(slack) as app:
        app.silent_attempts = 1
        slack.say("hi")
        first, second = await app.next(), await app.next()
        assert second.envelope_id == first.envelope_id
        assert (second.retry_attempt, second.retry_reason) == (1, "timeout")
        await slack.wait_for(lambda: slack.sockets.waiting == 0)


async def test_slash_command_may_be_answered_in_its_acknowledgement() -> None:
    async with SlackServer() as slack, listening(slack) as app:
        slack.command("/new", "begin again")
        request = await app.next()
        assert (request.type, request.accepts_response_payload) == ("slash_commands", True)
        assert (request.payload["command"], request.payload["text"]) == ("/new", "begin again")


async def test_socket_is_replaced_when_slack_asks_for_it() -> None:
    async with SlackServer() as slack, listening(slack) as app:
        await slack.sockets.disconnect("refresh_requested")
        await slack.wait_for(lambda: slack.sockets.opened == 2 and len(slack.sockets.open_sockets) == 1)
        slack.say("after")
        assert (await app.event())["text"] == "after"


async def test_sent_message_comes_back_as_it_was_kept() -> None:
    async with SlackServer() as slack:
        web = web_of(slack)
        root = slack.say("what?")
        sent = await web.chat_postMessage(
            channel="C1", markdown_text="**that**", thread_ts=root, metadata=METADATA, unfurl_links=False
        )
        [kept] = slack.sent
        assert (kept.ts, kept.channel, kept.text, kept.thread) == (sent["ts"], "C1", "**that**", root)
        assert kept.key == "k1.0"
        message = sent["message"]
        assert (message["ts"], message["thread_ts"], message["user"]) == (sent["ts"], root, BOT)
        assert (message["bot_id"], message["app_id"], message["team"]) == (BOT_ID, APP, TEAM)


async def test_history_and_replies_are_read_in_pages() -> None:
    async with SlackServer() as slack:
        web = web_of(slack)
        root, *others = [slack.say(text) for text in ("one", "two", "three")]
        sent = await web.chat_postMessage(channel="C1", text="answer", thread_ts=root, metadata=METADATA)
        pages = [page["messages"] async for page in await web.conversations_history(channel="C1", limit=2)]
        assert [[one["text"] for one in page] for page in pages] == [["three", "two"], ["one"]]
        assert pages[-1][0]["reply_count"] == 1
        since = await web.conversations_history(channel="C1", oldest=others[0])
        assert [one["text"] for one in since["messages"]] == ["three"]
        with_it = await web.conversations_history(channel="C1", oldest=others[0], inclusive=True)
        assert [one["text"] for one in with_it["messages"]] == ["three", "two"]
        replies = await web.conversations_replies(channel="C1", ts=root, include_all_metadata=True)
        assert [one["ts"] for one in replies["messages"]] == [root, sent["ts"]]
        assert replies["messages"][1]["metadata"] == METADATA
        assert replies["has_more"] is False


async def test_status_is_shown() -> None:
    async with SlackServer() as slack:
        await web_of(slack).assistant_threads_setStatus(channel_id="C1", thread_ts="1.0", status="is thinking...")
        [status] = slack.statuses
        assert (status["channel_id"], status["thread_ts"], status["status"]) == ("C1", "1.0", "is thinking...")


async def test_client_waits_when_it_is_rate_limited() -> None:
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="chat.postMessage")
    async with SlackServer(mischief=mischief) as slack:
        web = web_of(slack)
        web.retry_handlers.append(AsyncRateLimitErrorRetryHandler(max_retry_count=1))
        await web.chat_postMessage(channel="C1", text="hi")
        assert slack.calls["chat.postMessage"] == 2
        assert [one.text for one in slack.sent] == ["hi"]


async def test_rate_limit_says_how_long_to_wait() -> None:
    mischief = one_after_the_other(Mischief.SLOW_DOWN, method="chat.postMessage")
    async with SlackServer(mischief=mischief) as slack:
        with pytest.raises(SlackApiError) as found:
            await web_of(slack).chat_postMessage(channel="C1", text="hi")
        response = found.value.response
        assert (response.status_code, response["error"], response.headers["Retry-After"]) == (429, "ratelimited", "1")


async def test_refusals_are_named() -> None:
    async with SlackServer() as slack:
        slack.errors["C2"] = SlackError("is_archived")
        for channel, text, error in (("C2", "hi", "is_archived"), ("C1", "x" * 40_001, "msg_too_long")):
            with pytest.raises(SlackApiError) as found:
                await web_of(slack).chat_postMessage(channel=channel, text=text)
            assert found.value.response["error"] == error
        with pytest.raises(SlackApiError) as missing:
            await web_of(slack).conversations_history(channel="C9")
        assert missing.value.response["error"] == "channel_not_found"


def test_signature_is_the_one_the_library_verifies() -> None:
    body, now_s = b'{"type":"event_callback"}', 1_750_000_000
    headers = signed(body, now_s * 1_000)

    class Then:
        def now(self) -> float:
            return float(now_s + 5)

    verifier = SignatureVerifier(SECRET, Then())
    assert verifier.is_valid_request(body, headers)
    assert not verifier.is_valid_request(body + b" ", headers)


async def test_file_is_uploaded() -> None:
    async with SlackServer() as slack:
        root = slack.say("send it")
        made = await web_of(slack).files_upload_v2(
            content=b"# Notes\n",
            filename="notes.md",
            title="Notes",
            channel="C1",
            thread_ts=root,
            initial_comment="see",
        )
        assert made["files"][0]["title"] == "Notes"
        [sent] = slack.sent
        assert (sent.channel, sent.thread, sent.text) == ("C1", root, "see")
        assert [(one.name, one.content) for one in sent.files] == [("notes.md", b"# Notes\n")]
        page = await web_of(slack).conversations_replies(channel="C1", ts=root)
        [file] = page["messages"][1]["files"]
        assert (file["name"], file["title"], file["size"]) == ("notes.md", "Notes", 8)
        slack.errors["files.getUploadURLExternal"] = SlackError("missing_scope")
        with pytest.raises(SlackApiError) as found:
            await web_of(slack).files_upload_v2(content=b"x", filename="x.txt", channel="C1")
        assert found.value.response["error"] == "missing_scope"
