"""Slack, as much of it as a bot needs that people talk to: `async with SlackServer() as slack`.

What people say is sent to the sockets of `slack.sockets`, and kept in the history; `sent` is what the bot was let send,
`statuses` what it let people see. An event that is not acknowledged comes again; `signed` signs a request.
"""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl

from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import Connection, GoneError, HttpRequest
from keepsaid.testing.providers.forms import UploadedFile
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless
from keepsaid.testing.providers.slack_files import SlackFileServer
from keepsaid.testing.providers.slack_history import SlackHistory
from keepsaid.testing.providers.slack_sockets import SocketModeServer
from keepsaid.testing.providers.slack_uploads import SlackUploadServer
from keepsaid.values import frozen

BOT_TOKEN = "xoxb-scripted-bot-of-a-test"  # noqa: S105 - of a scripted bot
APP_TOKEN = "xapp-scripted-app-of-a-test"  # noqa: S105 - of a scripted app
SECRET = "signing-secret-of-a-test"  # noqa: S105 - of a scripted app
TEAM, BOT, BOT_ID, APP = "T0TEAM", "U0BOT", "B0BOT", "A0APP"
ACCOUNT = f"{TEAM}:{BOT}"
"""The account of the bot."""

_MARKDOWN_MAX, _TEXT_MAX = 12_000, 40_000
_BY_APP = "apps.connections.open"


class SlackError(Exception):
    """An error that the Web API names: `ok: false`, with a status, and the seconds to wait if there are any."""

    def __init__(self, error: str, status: int = 200, retry_after_s: int | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.retry_after_s = retry_after_s


@frozen
class SlackMessage:
    """A message that the bot was let send; `ts` is its name, `text` its Markdown or its plain text.

    `files` are those that it brought.
    """

    ts: str
    channel: str
    text: str
    thread: str | None
    parameters: Mapping[str, Any]
    files: tuple[UploadedFile, ...] = ()

    @property
    def key(self) -> str:
        """The key in its metadata."""
        return str(self.parameters.get("metadata", {}).get("event_payload", {}).get("key", ""))


class SlackServer(ListeningServer):
    """The Web API on a loopback port for one bot; an async context manager.

    `mischief` decides what goes wrong; `errors` maps methods, or channels of `chat.postMessage`, to the error that they
    answer. Every request is counted in `calls`, by method. `incoming` takes the files of the bot.
    `now_ms` is the time of what is said, milliseconds UTC.
    """

    def __init__(self, mischief: MischiefMaker = harmless, *, now_ms: Callable[[], int] | None = None) -> None:
        super().__init__(self._serve, 0)
        self.bot_token = BOT_TOKEN
        self.app_token = APP_TOKEN
        self.mischief = mischief
        self.sockets = SocketModeServer()
        self.uploads = SlackFileServer(BOT_TOKEN)
        self.incoming = SlackUploadServer()
        self.history = SlackHistory(BOT, now_ms or (lambda: int(time.time() * 1_000)))
        self.sent: list[SlackMessage] = []
        self.statuses: list[dict[str, Any]] = []
        self.calls: dict[str, int] = {}
        self.errors: dict[str, SlackError] = {}
        self.takes_markdown = True
        self._events = 0

    async def __aenter__(self) -> Self:
        """Listen, also for sockets."""
        await self.sockets.open()
        return await super().__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every client and every socket."""
        await self.sockets.close()
        await super().__aexit__(kind, error, trace)

    def say(self, text: str, *, user: str = "U7", channel: str = "C1", thread: str | None = None, **fields: Any) -> str:
        """Somebody writes in a channel, a thread of it or a direct message (`D1`); returns the `ts` of the message.

        Where the bot is mentioned in a channel, an `app_mention` follows the `message`.
        """
        message = self.history.add(channel, {"type": "message", "user": user, "text": text, **fields}, thread)
        kind = "im" if channel.startswith("D") else "channel"
        event = {**message, "channel": channel, "channel_type": kind, "event_ts": message["ts"]}
        self.emit(event)
        if kind == "channel" and f"<@{BOT}>" in text:
            self.emit({**event, "type": "app_mention"})
        return str(message["ts"])

    def send_file(self, content: bytes, text: str = "", *, channel: str = "D1", **fields: Any) -> dict[str, Any]:
        """Somebody sends a file; returns it as the event has it. `fields` are `name`, `mimetype`, `mode`..."""
        file = self.uploads.attach(self.url, content, **fields)
        self.say(text, channel=channel, subtype="file_share", files=[file])
        return file

    def emit(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Send an event of any kind to the sockets; returns its payload, as Slack would also post it."""
        self._events += 1
        payload: dict[str, Any] = {
            "token": "verification-token",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": dict(event),
        }
        payload |= {"type": "event_callback", "event_id": f"Ev{self._events}", "event_time": 1_750_000_000}
        self.sockets.deliver("events_api", payload)
        return payload

    def react(self, ts: str, name: str, *, user: str = "U7", channel: str = "C1", is_added: bool = True) -> None:
        """Somebody gives a message an emoji, by its name, or takes it back."""
        kind = "reaction_added" if is_added else "reaction_removed"
        item = {"type": "message", "channel": channel, "ts": ts}
        self.emit({"type": kind, "user": user, "reaction": name, "item": item, "event_ts": f"9.{self._events}"})

    def command(self, command: str, text: str = "", *, user: str = "U7", channel: str = "C1") -> dict[str, Any]:
        """Somebody gives a slash command; returns its payload."""
        self._events += 1
        payload = {"token": "verification-token", "team_id": TEAM, "channel_id": channel, "user_id": user}
        payload |= {"user_name": "ann", "command": command, "text": text, "trigger_id": f"13.{self._events}"}
        payload["response_url"] = "https://hooks.slack.com/commands/secret"
        self.sockets.deliver("slash_commands", payload)
        return payload

    async def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until something is so after a request or an acknowledgement; raises TimeoutError."""
        await self.sockets.wait_for(done, within_s)

    async def _serve(self, connection: Connection) -> None:
        try:
            with suppress(GoneError):
                while True:
                    request = await connection.receive()
                    if self.uploads.serves(request):
                        goes_on = await self.uploads.send(connection, request)
                        await self.sockets.tell()
                        if not goes_on:
                            return
                        continue
                    method = "upload" if self.incoming.serves(request) else request.path.rpartition("/")[2]
                    self.calls[method] = self.calls.get(method, 0) + 1
                    if not await self._answer(connection, request, method):
                        return
        finally:
            await connection.close()

    async def _answer(self, connection: Connection, request: HttpRequest, method: str) -> bool:
        """Answer a request as mischief wants; returns whether the connection goes on."""
        act = self.mischief(method, sum(self.calls.values()))
        if act is Mischief.DROP:
            await connection.reset()
            return False
        try:
            if not act.does:
                raise SlackError("ratelimited", 429, 1) if act is Mischief.SLOW_DOWN else SlackError("fatal_error", 500)
            if method == "upload":
                status, wait, answer = self.incoming.take(request), None, {}
            else:
                status, wait, answer = 200, None, self._done(request, method)
        except SlackError as error:
            status, wait, answer = error.status, error.retry_after_s, {"ok": False, "error": str(error)}
        await self.sockets.tell()
        if act is Mischief.RESET_AFTER:
            await connection.reset()
            return False
        if act is Mischief.GARBLE:
            await connection.send(200, b"<html>gateway</html>")
        elif act is Mischief.FAIL_AFTER:
            await connection.send(500, json.dumps({"ok": False, "error": "internal_error"}).encode())
        else:
            extra = {} if wait is None else {"retry-after": str(wait)}
            await connection.send(status, json.dumps(answer).encode(), extra=extra)
        return request.keep_alive

    def _done(self, request: HttpRequest, method: str) -> dict[str, Any]:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        wanted = (self.app_token,) if method == _BY_APP else (self.bot_token, self.app_token)
        if token not in wanted:
            raise SlackError("not_allowed_token_type" if token in (self.bot_token, self.app_token) else "invalid_auth")
        form = _form_of(request)
        if method in self.errors:
            raise self.errors[method]
        return {"ok": True, **self._result(method, form, by_app=token == self.app_token)}

    def _result(self, method: str, form: Mapping[str, str], *, by_app: bool) -> dict[str, Any]:
        match method:
            case "auth.test":
                bot = {"team_id": TEAM, "user_id": BOT, "user": "keepsaid", "bot_id": BOT_ID}
                who = {"app_id": APP} if by_app else {**bot, "is_enterprise_install": False}
                return {"url": "https://scripted.slack.com/", "team": "Scripted", **who}
            case "apps.connections.open":
                return {"url": self.sockets.make_url()}
            case "chat.postMessage":
                return self._post(form)
            case "files.getUploadURLExternal" | "files.completeUploadExternal":
                return self._share(form) if "files" in form else self._name(form)
            case "conversations.history" | "conversations.replies" | "reactions.add":
                return self._of_history(method, form)
            case "assistant.threads.setStatus":
                self.statuses.append(dict(form))
                return {}
        raise SlackError("unknown_method")

    def _of_history(self, method: str, form: Mapping[str, str]) -> dict[str, Any]:
        """What was said in a channel, or a reaction to it."""
        try:
            if method == "reactions.add":
                self.history.react(form)
                self.react(form["timestamp"], form["name"], user=BOT, channel=form["channel"])
                return {}
            return self.history.page(form, is_thread=method == "conversations.replies")
        except KeyError as error:
            raise SlackError(str(error.args[0])) from error

    def _name(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Name the address where a file can be uploaded."""
        try:
            return self.incoming.name(self.url, form)
        except KeyError as error:
            raise SlackError(str(error.args[0])) from error

    def _share(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Share uploaded files in a channel, or raise the error that Slack would name."""
        channel, thread = form.get("channel_id", ""), form.get("thread_ts")
        if channel in self.errors:
            raise self.errors[channel]
        try:
            files = self.incoming.complete(form)
        except KeyError as error:
            raise SlackError(str(error.args[0])) from error
        if channel:
            text = form.get("initial_comment", "")
            shown = [
                self.uploads.attach(self.url, one.content, id=number, name=one.name, title=title, mimetype=one.kind)
                for number, (title, one) in files.items()
            ]
            message = {"type": "message", "user": BOT, "bot_id": BOT_ID, "app_id": APP, "team": TEAM, "text": text}
            made = self.history.add(channel, {**message, "files": shown, "upload": True}, thread)
            brought = tuple(one for _, one in files.values())
            self.sent.append(SlackMessage(str(made["ts"]), channel, text, thread, dict(form), brought))
        return {"files": [{"id": number, "title": title} for number, (title, _) in files.items()]}

    def _post(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Accept a message as Slack would, or raise the error that it would name."""
        channel, thread = form.get("channel", ""), form.get("thread_ts")
        if channel in self.errors:
            raise self.errors[channel]
        if "markdown_text" in form and ("text" in form or not self.takes_markdown):
            raise SlackError("markdown_text_conflict" if "text" in form else "invalid_arguments")
        text = form.get("markdown_text") or form.get("text") or ""
        if not text.strip():
            raise SlackError("no_text")
        if len(text) > (_MARKDOWN_MAX if "markdown_text" in form else _TEXT_MAX):
            raise SlackError("msg_too_long")
        parsed: dict[str, Any] = {**form, "metadata": json.loads(form.get("metadata", "{}"))}
        message = {"type": "message", "user": BOT, "bot_id": BOT_ID, "app_id": APP, "team": TEAM, "text": text}
        made = self.history.add(channel, {**message, "metadata": parsed["metadata"]}, thread)
        self.sent.append(SlackMessage(str(made["ts"]), channel, text, thread, parsed))
        return {"channel": channel, "ts": made["ts"], "message": made}


def _form_of(request: HttpRequest) -> dict[str, str]:
    """The arguments of a method: a form, a query, or JSON, whose values are written as in a form."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        return dict(parse_qsl(f"{request.query}&{request.body.decode()}", keep_blank_values=True))
    given = json.loads(request.body)
    return {name: one if isinstance(one, str) else json.dumps(one) for name, one in given.items()}


def signed(body: bytes, now_ms: int, secret: str = SECRET) -> dict[str, str]:
    """The headers of a request that Slack posts at a time (milliseconds UTC): signed, in lower case."""
    timestamp = str(now_ms // 1_000)
    proof = hmac.new(secret.encode(), b"v0:" + timestamp.encode() + b":" + body, "sha256").hexdigest()
    return {"x-slack-request-timestamp": timestamp, "x-slack-signature": f"v0={proof}"}


def url_verification(challenge: str) -> bytes:
    """The body of the request that Slack posts when somebody enters the URL of a hook."""
    return json.dumps({"token": "verification-token", "challenge": challenge, "type": "url_verification"}).encode()
