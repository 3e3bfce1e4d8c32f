"""Fuzzing: requests to every route of the server, made by chance from a seed out of the shapes that the routes take."""

from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

from keepsaid.domain.agent_hook import AGENTS
from keepsaid.interfaces.agent_calls import CALLS
from keepsaid.interfaces.http.library import MEMORY_CALLS
from keepsaid.testing.webhooks import EVENTS, payload, sign

Json = Any
SECRET = "the fuzzer's secret"  # gitleaks:allow

HELLO = {
    "text": "hello", "sender": "ann", "conversation": "room", "name": "Ann", "direct": True, "account": "default",
    "channel": "http", "topic": "t", "provider_id": "p1", "reply_to": "p0",
    "data": {"attachments": [{"name": "a.pdf", "url": "https://example.org/a"}], "n": 1.5},
}  # fmt: skip
_LANE = {"channel": "http", "account": "default", "conversation": "room", "key": "root:room", "now": True}
_RECORD = {"type": "association", "source": "a", "target": "b", "relation": "updates", "weight": 0.5, "at": 1}
_MEDIA: dict[str, Json] = {
    "telegram": {
        "update_id": 1,
        "message": {
            "message_id": 2, "date": 1, "chat": {"id": -1, "type": "supergroup", "title": "x"},
            "from": {"id": 7, "first_name": "Ann", "username": "ann"}, "text": "hi", "message_thread_id": 4,
            "reply_to_message": {"message_id": 1, "from": {"id": 8}}, "document": {"file_id": "a", "file_size": 9},
        },
    },
    "discord": {
        "id": "1", "channel_id": "2", "guild_id": "3", "content": "hi", "author": {"id": "4", "username": "ann"},
        "attachments": [{"id": "5", "filename": "a", "size": 1}], "message_reference": {"message_id": "9"}, "type": 0,
    },
    "slack": {
        "type": "event_callback", "team_id": "T", "event_id": "E",
        "event": {"type": "message", "channel": "C", "user": "U", "text": "hi", "ts": "1.2", "thread_ts": "1.1",
                  "files": [{"id": "F", "name": "a", "size": 3}]},
    },
    "nostr": {
        "id": "a" * 64, "pubkey": "b" * 64, "kind": 1, "created_at": 1, "content": "hi", "sig": "c" * 128,
        "tags": [["e", "d" * 64, "", "root"], ["p", "e" * 64]],
    },
}  # fmt: skip
_SHAPES: dict[str, Json] = {
    "/v1/messages": HELLO,
    "/v1/replies/{id}/seen": {"provider_id": "p"},
    "/v1/replies/{id}/resend": {"accept": True},
    "/v1/messages/{id}/stop": {},
    "/v1/batches:lease": {"limit": 2, "lease_s": 60, "wait_s": 0, "worker": "one"},
    "/v1/batches/{id}/{fence}/renew": {"lease_s": 60},
    "/v1/batches/{id}/{fence}/done": {"reply": "hello", "worker": "one"},
    "/v1/batches/{id}/{fence}/fail": {"reason": "why"},
    "/v1/batches/{id}/{fence}/release": {},
    "/v1/batches/{id}/requeue": {"reason": "why"},
    "/v1/batches/{id}/drop": {"reason": "why"},
    "/v1/hooks/{agent}": {
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/srv/api", "prompt": "hi", "prompt_id": "p",
        "transcript_path": "/srv/s.jsonl", "messages": [{"role": "user", "id": "1", "text": "hi"}],
    },
    "/v1/lanes:record": {"conversation": "room", "messages": [{"role": "user", "text": "hi"}]},
    "/v1/lanes/reset": _LANE,
    "/v1/lanes/compact": _LANE,
    "/v1/memories": {"text": "Ann lives in Porto", "kind": "fact"},
    "/v1/memories/archive": {"ids": ["mem_1000000000000"], "back": True},
    "/v1/memories/import": {"do": "look", "records": [_RECORD], "contested": ["00"], "key": "00"},
    "/v1/memories/{id}/wrong": {"turn": "trn_1000000000000", "undo": False},
    "/v1/memories/{id}/widen": {"to": "global", "reason": "why"},
    "/v1/memories/{id}/edit": {"text": "Ann lives in Faro", "value": "Faro"},
    "/v1/memories/{id}/pin": {"pinned": True},
    "/v1/memories/{id}/merge": {"others": ["mem_1000000000000"]},
    "/v1/forget": {"filter": "zebra", "yes": True, "undo_for": "1d"},
    "/v1/forget/undo": {"id": "fgt_1000000000000"},
    "/v1/forget/settled": {"wait_s": 0},
    "/v1/collection/run": {"session": "ses_1000000000000"},
    "/v1/people/join": {"names": ["http:default:ann", "http:default:bob"]},
    "/v1/people/split": {"name": "http:default:ann"},
    "/v1/schedules": {
        "every_s": 3600, "say": "hi", "timezone": "UTC", "urgent": True,
        "to": {"channel": "http", "conversation": "room", "topic": "t"},
    },
    "/v1/tasks": {"task": "do it", "key": "k", "after": ["tsk_1000000000000"]},
    "/v1/tasks/{id}/approve": {"result": "r"},
    "/v1/tasks/{id}/reject": {"reason": "r"},
    "/v1/library/memory/{call}": {
        "query": "zebra", "limit": 3, "as_of": 1, "kind": "fact", "conversation": "room", "archived": False,
        "text": "x", "id": "mem_1000000000000", "ids": ["mem_1000000000000"], "kinds": ["fact"], "dry_run": True,
        "episodes": [{"text": "hi", "speaker": "ann", "conversation": "room", "said_at": 1, "external_id": "1"}],
    },
    "/v1/events": {"topic": "deploy.finished", "payload": {"n": 1}, "about": "api"},
    "/v1/events:wait": {"topic": "deploy.finished", "about": "api", "after": "0", "wait_s": 0},
    "/v1/embeddings": {"model": "keepsaid", "input": ["hi"], "encoding_format": "base64", "dimensions": 3},
    "/v1/responses": {
        "model": "keepsaid",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}],
        "instructions": "be short",
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "conversation": "room",
        "user": "ann",
        "stream": False,
        "max_output_tokens": 100,
        "parallel_tool_calls": False,
    },
    "/v1/chat/completions": {
        "model": "memory/away", "stream": True, "tools": [], "user": "ann",
        "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    },
}  # fmt: skip
_ODD: Sequence[Json] = (
    None, True, False, 0, -1, 1 << 63, -(1 << 63), 1 << 64, 10**299, 1.5, -0.0, 1e308, 5e-324, "", " ", "\0", "\ud800",
    "a\udc00b", "\u202eabc", "e\u0301" * 50, "🕯", "x" * 2_000, "9" * 400, "%s%n", "../../etc/passwd", "' OR 1=1 --",
    "http", "default", "room", "owner", "github", "terminal", "msg_1000000000000", "mem_1000000000000", "mem_zz",
    "sch_zzzzzzzzzzzzz", "-1d", "1e9d", "2030-13-01T00:00:00Z", "9999-12-31T23:59:60Z",
    "cron", "at", "ask", "run", "name", "person", "ids", "0001-01-01T00:00:00+14:00",
    "* * * * *", "60 24 32 13 8", "Europe/Nowhere", [], {}, [[]], [None], {"": None}, [{}] * 30, {"\ud800": "\ud800"},
)  # fmt: skip
_RAW = (
    b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}', b'{"text":NaN}', b"[" * 5_000,
    b'{"a":1e999}', b'{"a":%s}' % (b"9" * 4_400), b"\0" * 100, b'{"text":"\xed\xa0\x80"}', b'{"a":' * 600, b"{}" * 9,
)  # fmt: skip
_KINDS = ("application/json", "application/json; charset=utf-8", "text/plain", "application/x-www-form-urlencoded", "")
_QUERIES = ("after", "topics", "limit", "state", "key", "all", "channel", "conversation", "account", "reply_url", "x")
_PREFIXES = ("msg", "bat", "trn", "rep", "tsk", "mem", "ses", "sch", "fgt", "dlv", "evt")
_METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")


@dataclass(frozen=True)
class Target:
    """A route: its path with places, and its methods."""

    path: str
    methods: tuple[str, ...]


@dataclass
class Fuzzer:
    """Makes requests; `known` holds ids that answers named."""

    targets: Sequence[Target]
    token: str
    random: Random
    known: list[str] = field(default_factory=list)

    def request(self) -> bytes:
        """One request, as it is sent."""
        random, target = self.random, self.random.choice(self.targets)
        method = random.choice(target.methods) if random.random() < 0.97 else random.choice(_METHODS)
        path, body, headers = self._path(target), b"", dict[str, str]()
        if method in ("POST", "PUT", "PATCH"):
            body, headers = self._hook() if target.path.startswith("/hooks/") else self._body(target, path)
        if random.random() < 0.9:
            headers["Authorization"] = f"Bearer {self.token}"
        if random.random() < 0.1:
            headers["Idempotency-Key"] = random.choice(["k1", "k2", "x" * 512, "x" * 600, "\xe4"])
        if random.random() < 0.05:
            headers["Last-Event-ID"] = random.choice(["received", "settled-done-0", "9" * 40, "-1", "\xff"])
        if random.random() < 0.5:
            path += "?" + "&".join(
                f"{random.choice(_QUERIES)}={quote(self._text())}" for _ in range(random.randint(1, 3))
            )
        lines = [f"{method} {path[:6_000]} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body

    def learn(self, answer: bytes) -> None:
        """Take an id out of an answer."""
        start = answer.find(b'"id":"')
        if start >= 0 and len(self.known) < 2_000:
            self.known.append(answer[start + 6 : start + 40].partition(b'"')[0].decode("ascii", "replace"))

    def _path(self, target: Target) -> str:
        path = target.path.replace("{medium}", self.random.choice([*_MEDIA, "github", "zz"]))
        path = path.replace("{call}", self.random.choice([*CALLS, *MEMORY_CALLS, "zz"]))
        path = path.replace("{agent}", self.random.choice([*AGENTS, "zz"]))
        path = path.replace("{name}", self.random.choice(["github", "zz"]))
        path = path.replace("{verb}", self.random.choice(["run", "pause", "resume", "cancel", "zz"]))
        while "{" in path:
            before, _, rest = path.partition("{")
            path = before + quote(self._id(), safe="") + rest.partition("}")[2]
        return path

    def _id(self) -> str:
        if self.known and self.random.random() < 0.6:
            return self.random.choice(self.known)
        if self.random.random() < 0.5:
            return f"{self.random.choice(_PREFIXES)}_1{self.random.randrange(10**12):012d}"
        return self._text() or "x"

    def _text(self) -> str:
        odd = self.random.choice([one for one in _ODD if isinstance(one, str)])
        return odd.encode("utf-8", "replace").decode()[:600]

    def _body(self, target: Target, path: str) -> tuple[bytes, dict[str, str]]:
        kind = "application/json" if self.random.random() < 0.95 else self.random.choice(_KINDS)
        if self.random.random() < 0.05:
            return self.random.choice(_RAW), {"Content-Type": kind}
        shape = _MEDIA.get(path.rpartition("/")[2], {}) if "{medium}" in target.path else _SHAPES.get(target.path, {})
        return json.dumps(self._mutated(shape)).encode(), {"Content-Type": kind}

    def _hook(self) -> tuple[bytes, dict[str, str]]:
        event = self.random.choice(EVENTS)
        body = json.dumps(self._mutated(payload(event, self.random.randrange(50)))).encode()
        if self.random.random() < 0.05:
            body = self.random.choice(_RAW)
        signature = sign(SECRET, body) if self.random.random() < 0.9 else "sha256=" + "0" * 64
        headers = {"Content-Type": "application/json", "X-GitHub-Event": event, "X-Hub-Signature-256": signature}
        return body, {**headers, "X-GitHub-Delivery": f"d-{self.random.randrange(10**9)}"}

    def _mutated(self, shape: Json) -> Json:
        value = copy.deepcopy(shape)
        if isinstance(value, dict) and len(value) > 2 and self.random.random() < 0.5:
            for name in [name for name in value if self.random.random() < 0.3]:
                del value[name]
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 4])):
            value = self._changed(value)
        return value

    def _changed(self, value: Json) -> Json:
        """The value with one place in it replaced."""
        if isinstance(value, dict) and value and self.random.random() < 0.1:
            return {**value, self._text() or self.random.choice(_QUERIES): copy.deepcopy(self.random.choice(_ODD))}
        if isinstance(value, dict) and value and self.random.random() < 0.9:
            name = self.random.choice(list(value))
            return {**value, name: self._changed(value[name])}
        if isinstance(value, list) and value and self.random.random() < 0.8:
            at = self.random.randrange(len(value))
            return [*value[:at], self._changed(value[at]), *value[at + 1 :]]
        return copy.deepcopy(self.random.choice(_ODD))


@dataclass
class Tally:
    """What was answered: counts by status, and every answer that must not be."""

    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def take(self, request: bytes, answer: bytes) -> None:
        """Judge one answer: no 5xx but a 503 with a reason, no traceback, no redirect."""
        status = int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else 0
        self.statuses[status] += 1
        is_busy = status == 503 and b'"code":"KS-' in answer
        if (status >= 500 and not is_busy) or 300 <= status < 400 or b"Traceback" in answer or not status:
            self.wrong.append(f"{request[:600]!r} -> {answer[:300]!r}")


async def fuzz(address: tuple[str, int], fuzzer: Fuzzer, count: int, tally: Tally) -> None:
    """Send that many requests over one connection after another."""
    sent = 0
    while sent < count:
        reader, writer = await asyncio.open_connection(*address)
        try:
            while sent < count:
                request = fuzzer.request()
                sent += 1
                writer.write(request)
                answer, goes_on = await _answer(reader, request)
                tally.take(request, answer)
                fuzzer.learn(answer)
                if not goes_on:
                    break
        finally:
            writer.close()


async def _answer(reader: asyncio.StreamReader, request: bytes) -> tuple[bytes, bool]:
    """An answer, of a stream its head alone; and whether the connection goes on."""
    async with asyncio.timeout(120):
        head = await reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        size = lower.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if request.startswith(b"HEAD ") or head.startswith(b"HTTP/1.1 204"):
            return head, b"connection: close" not in lower
        if not size:
            return head, False
        return head + await reader.readexactly(int(size)), b"connection: close" not in lower
