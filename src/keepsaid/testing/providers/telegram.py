"""Telegram's Bot API, as much of it as a bot needs that people talk to: `async with TelegramServer(token) as telegram`.

What people say is queued by `say`; `sent` is what the bot was let send, `drafts` and `typing` what it let people see,
`reactions` what it gave to messages. Updates stay until a later offset confirms them. A second poller gets 409,
a message that the real one would refuse 400.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, unquote

from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import BadHttpError, Connection, GoneError, HttpRequest
from keepsaid.testing.providers.forms import UploadedFile, is_form, read_form
from keepsaid.testing.providers.kept_files import KeptFiles
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless
from keepsaid.testing.providers.telegram_posts import HookPoster
from keepsaid.testing.providers.telegram_reactions import TelegramReactions
from keepsaid.values import frozen

TOKEN = "4711:scripted-bot-of-a-test"  # noqa: S105 - of a scripted bot
BOT = "scripted_bot"
"""The name of the bot, without the @."""

_DATE = 1_700_000_000
_UNITS_MAX, _ENTITIES_MAX, _UPDATES_MAX = 4_096, 100, 100
_FILE_BYTES_MAX, _UPLOAD_BYTES_MAX = 20_000_000, 50_000_000
_UPLOADS = ("sendPhoto", "sendDocument", "sendVoice", "sendAudio", "sendVideo", "sendAnimation")
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF")
_TEXTS = ("text", "caption", "action", "url", "secret_token", "parse_mode", "file_id")
"""Parameters that are plain text in a form, where all others are JSON."""


class BadRequestError(Exception):
    """What the Bot API refuses: its code and words, and what it adds."""

    def __init__(self, code: int, what: str, **parameters: int) -> None:
        super().__init__(what)
        self.code = code
        self.parameters = parameters


@frozen
class SentMessage:
    """A message that the bot was let send; `number` is its id, `file` what it brought, sent by `method`."""

    number: int
    chat: int
    text: str
    parameters: Mapping[str, Any]
    file: UploadedFile | None = None
    method: str = "sendMessage"


class TelegramServer(ListeningServer):
    """The Bot API on a loopback port for one bot; an async context manager.

    `mischief` decides what goes wrong; `gone` maps chats to what is said of sending there, `refused_methods`
    methods that take files to what is said of them; while `rival` is set, another program polls. A poll takes
    `poll_scale` of the seconds that it asks for, which are added up in `polled_s`. `posts` does what a webhook does,
    once the bot or another program has set one. Every request is counted in `calls`, by method.
    """

    def __init__(self, token: str = TOKEN, mischief: MischiefMaker = harmless, *, port: int = 0) -> None:
        super().__init__(self._serve, port)
        self.token = token
        self.mischief = mischief
        self.sent: list[SentMessage] = []
        self.drafts: list[dict[str, Any]] = []
        self.typing: list[dict[str, Any]] = []
        self.menu: list[dict[str, str]] = []
        self.calls: dict[str, int] = {}
        self.gone: dict[int, BadRequestError] = {}
        self.refused_methods: dict[str, BadRequestError] = {}
        self.reactions = TelegramReactions()
        self.rival = False
        self.poll_scale, self.polled_s = 1.0, 0.0
        self.files = KeptFiles()
        self._updates: list[dict[str, Any]] = []
        self.posts = HookPoster(self._updates, lambda: self.mischief("hook", self.posts.posts), self._tell)
        self._number = 0
        self._polls: list[asyncio.Event] = []
        self._news = asyncio.Condition()

    @property
    def waiting(self) -> int:
        """How many updates nobody confirmed."""
        return len(self._updates)

    def say(self, text: str, *, sender: int = 7, chat: int = 7, **fields: Any) -> int:
        """Somebody writes to the bot; returns the id of the message. Chats of groups are negative."""
        self._number += 1
        number = self._number
        person = {"id": sender, "is_bot": False, "first_name": f"Person {sender}"}
        message = {"message_id": number, "from": person, "chat": _chat(chat), "date": _DATE, "text": text}
        self.reactions.messages.add((chat, number))
        self.update(message=message | fields)
        return number

    def react(self, number: int, *emoji: str, sender: int = 7, chat: int = 7, **fields: Any) -> None:
        """Somebody gives a message these emoji in the place of the former ones; none takes them back."""
        self._number += 1
        kind = "private" if chat > 0 else "supergroup"
        person = {"id": sender, "is_bot": False, "first_name": f"Person {sender}"}
        given: dict[str, Any] = {"chat": {"id": chat, "type": kind}, "message_id": number, "user": person}
        given |= {"date": _DATE + self._number, "old_reaction": []}
        new = [{"type": "emoji", "emoji": one} for one in emoji]
        self.update(message_reaction=given | {"new_reaction": new} | fields)

    def send_file(
        self, kind: str, content: bytes, caption: str = "", *, chat: int = 7, **fields: Any
    ) -> dict[str, Any]:
        """Somebody sends a file of a kind, such as photo, voice or document; returns it as the update has it."""
        file_id = self.files.keep(content)
        file = {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": len(content), **fields}
        small = {"file_id": f"{file_id}-small", "file_unique_id": f"u-{file_id}-small", "width": 90, "height": 90}
        sizes = [small, {**file, "width": 800, "height": 800}]
        self._number += 1
        person = {"id": abs(chat), "is_bot": False, "first_name": f"Person {abs(chat)}"}
        told = {"caption": caption} if caption else {}
        message = {"message_id": self._number, "from": person, "chat": _chat(chat), "date": _DATE, **told}
        lasts = {"duration": 3} if kind in ("voice", "audio", "video", "video_note") else {}
        self.update(message={**message, kind: sizes if kind == "photo" else lasts | file})
        return file

    def update(self, **fields: Any) -> None:
        """Queue an update of any kind."""
        self._number += 1
        self._updates.append({"update_id": 500_000 + self._number, **fields})
        for poll in (*self._polls, self.posts.news):
            poll.set()

    async def wait_for(self, done: Callable[[], bool], within_s: float = 120.0) -> None:
        """Wait until something is so after a request; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Post nothing more, and drop every client."""
        await self.posts.close()
        await super().__aexit__(kind, error, trace)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _serve(self, connection: Connection) -> None:
        try:
            with suppress(GoneError):
                while True:
                    request = await connection.receive()
                    method = request.path.rpartition("/")[2]
                    if unquote(request.path).startswith(f"/file/bot{self.token}/"):
                        goes_on = await self.files.send(connection, method, request.headers)
                        await self._tell()
                        if not goes_on:
                            return
                        continue
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
        status, told = await self._done(request, method, connection) if act.does else _refusal(act)
        await self._tell()
        if act is Mischief.RESET_AFTER:
            await connection.reset()
            return False
        if act is Mischief.GARBLE:
            await connection.send(200, b"<html>gateway</html>")
        elif act is Mischief.FAIL_AFTER:
            await connection.send(500, json.dumps(_refused(500, "Internal Server Error")).encode())
        else:
            await connection.send(status, json.dumps(told).encode())
        return request.keep_alive

    async def _done(self, request: HttpRequest, method: str, connection: Connection) -> tuple[int, dict[str, Any]]:
        if not request.path.startswith(f"/bot{self.token}/"):
            return 401, _refused(401, "Unauthorized")
        given = _parameters_of(request)
        try:
            result = await self._poll(given, connection) if method == "getUpdates" else self._result(method, given)
        except BadRequestError as error:
            return error.code, _refused(error.code, str(error), **error.parameters)
        return 200, {"ok": True, "result": result}

    def _result(self, method: str, given: Mapping[str, Any]) -> Any:
        match method:
            case "getMe":
                may = {"can_join_groups": True, "can_read_all_group_messages": False, "supports_inline_queries": False}
                return {**self._bot(), **may, "has_topics_enabled": False}
            case "getWebhookInfo":
                return self._hook()
            case "setWebhook" | "deleteWebhook":
                self.posts.set(given)
                return True
            case "sendMessage":
                return self._send(given)
            case "setMessageReaction":
                return self._react(given)
            case "sendMessageDraft":
                return self._draft(given)
            case "sendChatAction":
                self.typing.append(dict(given))
                return True
            case "getFile":
                return self._file(str(given.get("file_id")))
            case "getMyCommands" | "setMyCommands":
                return self._commands(method, given)
        return self._take_file(method, given)

    def _hook(self) -> dict[str, Any]:
        failed = {"last_error_date": _DATE, "last_error_message": self.posts.error} if self.posts.error else {}
        about = {"url": self.posts.url, "has_custom_certificate": False}
        return {**about, "pending_update_count": len(self._updates), **failed}

    def _commands(self, method: str, given: Mapping[str, Any]) -> Any:
        if method == "getMyCommands":
            return self.menu
        self.menu = list(given["commands"])
        return True

    def _file(self, file_id: str) -> dict[str, Any]:
        if (content := self.files.contents.get(file_id)) is None:
            raise BadRequestError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if len(content) > _FILE_BYTES_MAX:
            raise BadRequestError(400, "Bad Request: file is too big")
        return {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": len(content), "file_path": file_id}

    async def _poll(self, given: Mapping[str, Any], connection: Connection) -> list[dict[str, Any]]:
        """The updates from an offset on; waits for the first. What is before the offset is confirmed, and goes."""
        if self._polls or self.rival:
            raise BadRequestError(409, "Conflict: terminated by other getUpdates request")
        if self.posts.url:
            raise BadRequestError(409, "Conflict: can't use getUpdates method while webhook is active")
        offset = int(given.get("offset", 0))
        self._updates[:] = [one for one in self._updates if one["update_id"] >= offset]
        await self._tell()  # who waits for a confirmation does not wait for the end of this poll too
        if not self._updates and given.get("timeout"):
            news = asyncio.Event()
            self.polled_s += float(given["timeout"])
            self._polls.append(news)
            gone = asyncio.ensure_future(connection.pause(float(given["timeout"]) * self.poll_scale))
            came = asyncio.ensure_future(news.wait())
            try:
                await asyncio.wait((gone, came), return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    gone.result()
            finally:
                self._polls.remove(news)
                gone.cancel()
                came.cancel()
                await asyncio.gather(gone, came, return_exceptions=True)
        return self._updates[: min(_UPDATES_MAX, int(given.get("limit", _UPDATES_MAX)))]

    def _draft(self, given: Mapping[str, Any]) -> bool:
        if int(given["chat_id"]) < 0:
            raise BadRequestError(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        if not given["draft_id"]:
            raise BadRequestError(400, "Bad Request: DRAFT_ID_INVALID")
        _check(given["text"], given.get("entities", []))
        self.drafts.append(dict(given))
        return True

    def _react(self, given: Mapping[str, Any]) -> bool:
        if reason := self.reactions.set(given):
            raise BadRequestError(400, reason)
        return True

    def _send(self, given: Mapping[str, Any]) -> dict[str, Any]:
        chat, text = given.get("chat_id"), given.get("text")
        if not isinstance(chat, int):
            raise BadRequestError(400, "Bad Request: chat not found")
        if chat in self.gone:
            raise self.gone[chat]
        _check(text, given.get("entities", []))
        return self._made(SentMessage(self._next(chat), chat, str(text), dict(given))) | {"text": text}

    def _take_file(self, method: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Take an upload as the real one does: none without bytes, none too large, and no picture that is none."""
        if method not in _UPLOADS:
            raise BadRequestError(404, "Not Found")
        chat, file = given.get("chat_id"), given.get(method.removeprefix("send").lower())
        if not isinstance(chat, int):
            raise BadRequestError(400, "Bad Request: chat not found")
        if (refusal := self.refused_methods.get(method) or self.gone.get(chat)) is not None:
            raise refusal
        if not isinstance(file, UploadedFile) or not file.content:
            raise BadRequestError(400, "Bad Request: file must be non-empty")
        if len(file.content) > _UPLOAD_BYTES_MAX:
            raise BadRequestError(413, "Request Entity Too Large")
        if method == "sendPhoto" and not file.content.startswith(_PICTURES):
            raise BadRequestError(400, "Bad Request: IMAGE_PROCESS_FAILED")
        caption, plain = str(given.get("caption", "")), {name: one for name, one in given.items() if one is not file}
        return self._made(SentMessage(self._next(chat), chat, caption, plain, file, method)) | {"caption": caption}

    def _next(self, chat: int) -> int:
        self._number += 1
        self.reactions.messages.add((chat, self._number))
        return self._number

    def _made(self, message: SentMessage) -> dict[str, Any]:
        self.sent.append(message)
        given, chat = message.parameters, message.chat
        made = {"message_id": message.number, "from": self._bot(), "chat": _chat(chat), "date": _DATE}
        topic = given.get("message_thread_id")
        made |= {} if topic is None else {"message_thread_id": topic, "is_topic_message": True}
        return made | ({"entities": given["entities"]} if given.get("entities") else {})

    def _bot(self) -> dict[str, Any]:
        number = int(self.token.partition(":")[0])
        return {"id": number, "is_bot": True, "first_name": "Scripted bot", "username": BOT}


def _parameters_of(request: HttpRequest) -> dict[str, Any]:
    """The parameters of a request, which are JSON or a form; raises BadHttpError for what is neither."""
    if is_form(request):
        form = read_form(request)
        fields = {name: value if name in _TEXTS else json.loads(value) for name, value in form.fields.items()}
        return {**fields, **form.files}
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        pairs = parse_qsl(request.body.decode(), keep_blank_values=True)
        return {name: value if name in _TEXTS else json.loads(value) for name, value in pairs}
    try:
        return dict(json.loads(request.body or b"{}"))
    except ValueError as error:
        raise BadHttpError(400, "The body is not JSON.") from error


def _chat(number: int) -> dict[str, Any]:
    """A chat as messages have it: that of a person or, for negative numbers, a group."""
    if number > 0:
        return {"id": number, "type": "private", "first_name": f"Person {number}"}
    return {"id": number, "type": "supergroup", "title": "The room"}


def _check(text: object, entities: Sequence[Mapping[str, Any]]) -> None:
    """Raise BadRequestError for a text that the real one would refuse."""
    if not isinstance(text, str) or not text.strip():
        raise BadRequestError(400, "Bad Request: message text is empty")
    units = len(text.encode("utf-16-le")) // 2
    if units > _UNITS_MAX:
        raise BadRequestError(400, "Bad Request: message is too long")
    if len(entities) > _ENTITIES_MAX:
        raise BadRequestError(400, "Bad Request: too many entities")
    for one in entities:
        if one["offset"] < 0 or one["length"] <= 0 or one["offset"] + one["length"] > units:
            raise BadRequestError(400, "Bad Request: entity beyond the end of the text")


def _refused(code: int, what: str, **parameters: int) -> dict[str, Any]:
    told: dict[str, Any] = {"ok": False, "error_code": code, "description": what}
    return told | ({"parameters": parameters} if parameters else {})


def _refusal(act: Mischief) -> tuple[int, dict[str, Any]]:
    """The answer to a request that is not done."""
    if act is Mischief.SLOW_DOWN:
        return 429, _refused(429, "Too Many Requests: retry after 1", retry_after=1)
    return 500, _refused(500, "Internal Server Error")
