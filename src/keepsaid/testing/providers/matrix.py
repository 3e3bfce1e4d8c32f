"""A homeserver of Matrix, as much of it as an account needs that people talk to: `async with MatrixServer() as matrix`.

People talk by `say` and `send`; `sent` holds what the account sent, `reactions` what it gave to
messages, `typing` what it showed people. A transaction
that comes twice from one device is one event. Events of more than 65,536 bytes are refused.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, unquote

from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import BadHttpError, Connection, GoneError, HttpRequest
from keepsaid.testing.providers.matrix_keys import MatrixKeysLedger
from keepsaid.testing.providers.matrix_media import MatrixMedia
from keepsaid.testing.providers.matrix_rooms import DEVICE, USER, MatrixError, MatrixRoomsLedger, name_of
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless
from keepsaid.values import frozen

TOKEN = "scripted-token-of-a-test"  # noqa: S105 - of a scripted account
_PREFIX = "/_matrix/client/v3/"
_EVENT_BYTES_MAX = 65_536

_SYNC = "sync"
_REACTION = "m.reaction"


@frozen
class MatrixSent:
    """A message of the account that was accepted."""

    number: str
    room: str
    txn: str
    content: Mapping[str, Any]

    @property
    def body(self) -> str:
        """Its plain text; of a file without words nothing."""
        body = str(self.content.get("body", ""))
        return "" if body == self.content.get("filename") else body


class MatrixServer(ListeningServer):
    """A homeserver on a loopback port with one account; an async context manager.

    `mischief` decides what goes wrong, by the name of the method: `sync`, `send`, `messages` and so on. `refusals` maps
    rooms to what is answered to sending there. A poll takes `poll_scale` of the time that it asks for. With
    `forgets_transactions` a transaction is not recognised, as after a restart of some servers. `answers` are given to
    the next syncs instead of the true ones. Every request is counted in `calls`.
    """

    def __init__(
        self,
        mischief: MischiefMaker = harmless,
        *,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1_000),
        poll_scale: float = 1.0,
        port: int = 0,
    ) -> None:
        super().__init__(self._serve, port)
        self.token = TOKEN
        self.device = DEVICE
        self.mischief = mischief
        self.rooms = MatrixRoomsLedger(now_ms)
        self.keys = MatrixKeysLedger(self.rooms)
        self.media = MatrixMedia(TOKEN)
        self.sent: list[MatrixSent] = []
        self.reactions: list[MatrixSent] = []
        self.typing: list[dict[str, Any]] = []
        self.calls: dict[str, int] = {}
        self.refusals: dict[str, MatrixError] = {}
        self.join_refusals: list[MatrixError] = []
        self.answers: list[Any] = []
        self.polls: list[dict[str, str]] = []
        self.forgets_transactions = False
        self.oldest_since = 0
        self.poll_scale = poll_scale
        self._news = asyncio.Condition()
        self._polls: set[asyncio.Event] = set()

    def room(self, room: str, *users: str, joined: bool = True, **state: Any) -> str:
        """Make a room of some users and, if `joined`, the account; `name` and `encryption` are its state."""
        for user in users:
            self.rooms.enter(room, user)
        if joined:
            self.rooms.enter(room, USER)
        for kind, told in state.items():
            content = {"name": told} if kind == "name" else {"algorithm": told}
            self.rooms.add(room, f"m.room.{kind}", USER, content, state_key="")
        self._wake()
        return room

    def say(self, text: str, room: str = "!room:test", sender: str = "@ann:test", /, **content: Any) -> str:
        """Somebody writes to a room; returns the id of the event."""
        return self.send("m.room.message", room, sender, {"msgtype": "m.text", "body": text, **content})

    def send(self, kind: str, room: str, sender: str, content: Mapping[str, Any], **more: Any) -> str:
        """Somebody sends an event of any kind; returns its id."""
        number = self.rooms.add(room, kind, sender, content, **more)
        self._wake()
        return number

    def send_file(self, content: bytes, text: str = "", room: str = "!room:test", **fields: Any) -> dict[str, Any]:
        """Ann sends a file to a room; returns the content of the event. `fields` are `msgtype`, `info`..."""
        told = self.media.attach(content, text, **fields)
        self.send("m.room.message", room, "@ann:test", told)
        return told

    def edit(self, number: str, text: str, room: str = "!room:test", sender: str = "@ann:test") -> str:
        """Somebody edits a message; returns the id of the new event."""
        new = {"msgtype": "m.text", "body": text}
        return self.say(
            f"* {text}",
            room,
            sender,
            **{"m.new_content": new, "m.relates_to": {"rel_type": "m.replace", "event_id": number}},
        )

    def react(self, number: str, emoji: str, room: str = "!room:test", sender: str = "@ann:test") -> str:
        """Somebody gives an event an emoji; returns the id of the new event."""
        related = {"rel_type": "m.annotation", "event_id": number, "key": emoji}
        return self.send(_REACTION, room, sender, {"m.relates_to": related})

    def redact(self, number: str, room: str = "!room:test", sender: str = "@ann:test") -> str:
        """Somebody deletes an event: its content goes; returns the id of the redaction."""
        found = self.rooms.find(room, number)
        made = self.send("m.room.redaction", room, sender, {}, redacts=number)
        if found is not None and (reason := self.rooms.find(room, made)) is not None:
            found.event.update(content={}, unsigned={"redacted_because": reason.event})
        return made

    def send_to_devices(self, sender: str, kind: str, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """A user sends messages to devices, by user and device."""
        self.keys.send(sender, kind, messages)
        self._wake()

    def invite(self, room: str, by: str) -> None:
        """A user invites the account to a room."""
        self.rooms.enter(room, USER, "invite", by)
        self._wake()

    async def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until something is so after a request; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    def _wake(self) -> None:
        for poll in self._polls:
            poll.set()

    async def _serve(self, connection: Connection) -> None:
        try:
            with suppress(GoneError):
                while True:
                    request = await connection.receive()
                    answer = self.media.send if self.media.serves(request) else self._answer
                    goes_on = await answer(connection, request)
                    async with self._news:
                        self._news.notify_all()
                    if not goes_on:
                        return
        finally:
            await connection.close()

    async def _answer(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer a request as mischief wants; returns whether the connection goes on."""
        names = [unquote(one) for one in request.path.removeprefix(_PREFIX).split("/")]
        method = "upload" if self.media.takes(request) else _method_of(names)
        self.calls[method] = self.calls.get(method, 0) + 1
        act = self.mischief(method, sum(self.calls.values()))
        if act is Mischief.DROP:
            await connection.reset()
            return False
        status, told = await self._done(request, names, connection) if act.does else _refusal(act)
        async with self._news:
            self._news.notify_all()
        if act is Mischief.RESET_AFTER:
            await connection.reset()
            return False
        if act is Mischief.GARBLE:
            await connection.send(200, b"<html>gateway</html>")
        elif act is Mischief.FAIL_AFTER:
            await connection.send(500, json.dumps(_error(MatrixError(500, "M_UNKNOWN"))).encode())
        else:
            await connection.send(status, told if isinstance(told, bytes) else json.dumps(told).encode())
        return request.keep_alive

    async def _done(self, request: HttpRequest, names: list[str], connection: Connection) -> tuple[int, Any]:
        try:
            if not request.path.startswith(_PREFIX) and not self.media.takes(request):
                raise MatrixError(404, "M_UNRECOGNIZED")
            if request.headers.get("authorization") != f"Bearer {self.token}":
                raise MatrixError(401, "M_UNKNOWN_TOKEN", "Invalid access token passed.")
            if self.media.takes(request):
                return 200, self.media.take(request)
            query = {name: one[0] for name, one in parse_qs(request.query).items()}
            if names == [_SYNC]:
                return 200, await self._poll(query, connection)
            return 200, self._result(request, names, query)
        except MatrixError as error:
            return error.status, _error(error)

    def _result(self, request: HttpRequest, names: list[str], query: Mapping[str, str]) -> Any:
        match (request.method, *names):
            case ("GET", "account", "whoami"):
                return {"user_id": USER, **({"device_id": self.device} if self.device else {})}
            case ("GET", "joined_rooms"):
                return {"joined_rooms": self.rooms.rooms()}
            case ("GET", "profile", user, "displayname"):
                return {"displayname": name_of(user)}
            case ("GET", "user", _, "account_data", "m.direct"):
                return self._found(self.rooms.direct or None)
            case ("GET", "rooms", room, *rest):
                return self._read(room, rest, query)
            case ("PUT", "rooms", room, "send", kind, txn):
                return self._send(room, kind, txn, _body_of(request))
            case ("PUT", "rooms", room, "typing", _):
                self._enter(room)
                self.typing.append({"room": room, **_body_of(request)})
                return {}
            case ("POST" | "PUT", "keys" | "sendToDevice", what, *rest):
                return self._keys(what, rest, _body_of(request))
            case ("POST", "rooms", room, "join") | ("POST", "join", room):
                return self._join(room)
        raise MatrixError(404, "M_UNRECOGNIZED")

    def _keys(self, what: str, names: Sequence[str], body: Mapping[str, Any]) -> dict[str, Any]:
        """What the device of the account wants of keys, or sends to devices: the latter once for a transaction."""
        match (what, *names):
            case ("upload",) if self.keys.refuses:
                raise MatrixError(400, "M_UNKNOWN", "One time key signed_curve25519:AAAA already exists")
            case ("upload",):
                return self.keys.upload(USER, self.device, body)
            case ("query",):
                return self.keys.query(body["device_keys"])
            case ("device_signing" | "signatures" as which, "upload"):
                if which == "device_signing" and self.keys.has_other_master(USER, body):
                    raise MatrixError(401, "")
                return self.keys.sign(USER, body)
            case ("claim",):
                return self.keys.claim(body["one_time_keys"])
            case (kind, txn):
                if txn not in self.keys.transactions:
                    self.keys.transactions.add(txn)
                    self.send_to_devices(USER, kind, body["messages"])
                return {}
        raise MatrixError(404, "M_UNRECOGNIZED")

    def _read(self, room: str, names: list[str], query: Mapping[str, str]) -> Any:
        self._enter(room)
        match names:
            case ["joined_members"]:
                members = self.rooms.members(room)
                return {"joined": {user: {"display_name": one.get("displayname")} for user, one in members.items()}}
            case ["state", kind, *keys]:
                return self._found(self.rooms.state(room, kind, *keys))
            case ["event", number]:
                found = self.rooms.find(room, number)
                return self._found({**found.event, "room_id": room} if found is not None else None)
            case ["messages"]:
                return self._page(room, query)
        raise MatrixError(404, "M_UNRECOGNIZED")

    def _page(self, room: str, query: Mapping[str, str]) -> dict[str, Any]:
        start = _place_of(query["from"]) if "from" in query else self.rooms.at
        to = _place_of(query["to"]) if "to" in query else 0
        types = json.loads(query.get("filter", "{}")).get("types")
        limit = int(query.get("limit", "10"))
        found = self.rooms.page(room, start, to, limit, types)
        more = {"end": f"s{found[-1].at - 1}"} if len(found) == limit else {}
        return {"chunk": [{**one.event, "room_id": room} for one in found], "start": f"s{start}", **more}

    def _join(self, room: str) -> dict[str, Any]:
        if self.join_refusals:
            raise self.join_refusals.pop(0)
        if room not in self.rooms.invites and self.rooms.membership(room) != "join":
            raise MatrixError(403, "M_FORBIDDEN", "You are not invited to this room.")
        if self.rooms.membership(room) != "join":
            self.rooms.enter(room, USER)
            self._wake()
        return {"room_id": room}

    def _send(self, room: str, kind: str, txn: str, content: dict[str, Any]) -> dict[str, Any]:
        self._enter(room)
        if room in self.refusals:
            raise self.refusals[room]
        before = None if self.forgets_transactions else self.rooms.transactions.get((self.device, txn))
        if before is not None:
            return {"event_id": before}
        if len(json.dumps(content, ensure_ascii=False).encode()) + 500 > _EVENT_BYTES_MAX:
            raise MatrixError(413, "M_TOO_LARGE", "event too large")
        if kind == _REACTION and self.rooms.has_reaction(room, USER, content):
            raise MatrixError(400, "M_DUPLICATE_ANNOTATION", "Can't send same reaction twice")
        number = self.rooms.transactions[self.device, txn] = self.rooms.add(
            room, kind, USER, content, unsigned={"transaction_id": txn}
        )
        (self.reactions if kind == _REACTION else self.sent).append(MatrixSent(number, room, txn, content))
        self._wake()
        return {"event_id": number}

    def _enter(self, room: str) -> None:
        if self.rooms.membership(room) != "join":
            raise MatrixError(403, "M_FORBIDDEN", f"User {USER} not in room {room}")

    def _found(self, content: dict[str, Any] | None) -> dict[str, Any]:
        if content is None:
            raise MatrixError(404, "M_NOT_FOUND")
        return content

    async def _poll(self, query: Mapping[str, str], connection: Connection) -> Any:
        """What happened since a place of the stream; waits for the first event."""
        self.polls.append(dict(query))
        if self.answers:
            return self.answers.pop(0)
        since = _place_of(query["since"]) if "since" in query else 0
        if 0 < since < self.oldest_since:
            raise MatrixError(400, "M_UNKNOWN_POS", "Unknown position")
        wanted = json.loads(query.get("filter", "{}")).get("room", {}).get("timeline", {})
        limit, types = int(wanted.get("limit", 10)), wanted.get("types")
        timeout_ms = int(query.get("timeout", "0"))
        while since and timeout_ms and self._is_idle(since, types):
            if not await self._woken(connection, timeout_ms * self.poll_scale / 1_000):
                break
        data = [{"type": "m.direct", "content": self.rooms.direct}] if self.rooms.direct_at > since else []
        told = {"next_batch": f"s{self.rooms.at}", "rooms": self.rooms.view(since, limit, types)}
        told |= self.keys.view(USER, self.device, since)
        return {**told, **({"account_data": {"events": data}} if data else {})}

    def _is_idle(self, since: int, types: Any) -> bool:
        has_news = self.rooms.direct_at > since or self.keys.has_news(USER, self.device, since)
        return not has_news and not self.rooms.view(since, 1, types)

    async def _woken(self, connection: Connection, within_s: float) -> bool:
        """Wait for news; False when there are none in time. Raises GoneError when the client leaves."""
        news = asyncio.Event()
        self._polls.add(news)
        gone = asyncio.ensure_future(connection.pause(within_s))
        came = asyncio.ensure_future(news.wait())
        try:
            await asyncio.wait((gone, came), return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                gone.result()
            return news.is_set()
        finally:
            self._polls.discard(news)
            gone.cancel()
            came.cancel()
            await asyncio.gather(gone, came, return_exceptions=True)


def _method_of(names: list[str]) -> str:
    """The name of a method: what is read of a room, or done in it."""
    if names[0] == "rooms" and len(names) > 2:
        return names[2]
    return "/".join(names[-2:]) if names[0] in ("account", "keys") else names[0]


def _place_of(token: str) -> int:
    if not token.startswith("s") or not token[1:].isdecimal():
        raise MatrixError(400, "M_UNKNOWN", f"Invalid stream token {token}")
    return int(token[1:])


def _body_of(request: HttpRequest) -> dict[str, Any]:
    try:
        return dict(json.loads(request.body or b"{}"))
    except ValueError as error:
        raise BadHttpError(400, "The body is not JSON.") from error


def _error(error: MatrixError) -> dict[str, Any]:
    wait = {} if error.retry_after_ms is None else {"retry_after_ms": error.retry_after_ms}
    return {"errcode": error.code, "error": str(error), **wait}


def _refusal(act: Mischief) -> tuple[int, dict[str, Any]]:
    """The answer to a request that is not done."""
    if act is Mischief.SLOW_DOWN:
        return 429, _error(MatrixError(429, "M_LIMIT_EXCEEDED", "Too Many Requests", 1_000))
    return 500, _error(MatrixError(500, "M_UNKNOWN", "Internal server error"))
