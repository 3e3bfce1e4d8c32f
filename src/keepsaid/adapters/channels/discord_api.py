"""Discord's REST interface: one bounded request at a time, and what an answer means for a reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from keepsaid.adapters.channels.discord_limits import DiscordLimits, seconds
from keepsaid.adapters.channels.http_client import HTTP_ERRORS, BoundedHttp, HttpCall
from keepsaid.adapters.channels.line import requested_ms, with_jitter
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.adapters.channels.uploads import UPLOAD_S, FormBody
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.ports.runtime import Clock
from keepsaid.text.normal import cut, normalise

API_URL: Final = "https://discord.com/api/v10"
_BYTES_MAX = 8_000_000
_DETAIL_CHARS_MAX = 200
_JSON = "application/json"
_USER_AGENT = "DiscordBot (keepsaid, 1)"
_BAD_TOKEN_WAIT_MS = 60_000
_BROKEN_WAIT_S = 60.0
_PATIENT_MS = 5_000
"""A request waits for its rate limit for five seconds at most; beyond that it is refused, and tried again later."""

BAD_TOKEN: Final = "discord.token is not accepted"  # noqa: S105 - the reason, not a token


class DiscordUnreachable(Exception):
    """No answer came, or none that can be read; `sent` says whether the request may have arrived."""

    def __init__(self, what: str, *, sent: bool) -> None:
        super().__init__(cut(what, _DETAIL_CHARS_MAX))
        self.sent = sent


class DiscordRefused(Exception):
    """Discord did not carry out a request: the HTTP status, its words, and the seconds to wait.

    `is_global` says that the rate limit is that of all requests.
    """

    def __init__(self, status: int, what: str, retry_after_s: float | None = None, *, is_global: bool = False) -> None:
        super().__init__(f"{status}: {what}")
        self.status = status
        self.what = what
        self.retry_after_s = retry_after_s
        self.is_global = is_global


class DiscordApi:
    """Calls Discord's REST interface at `url` for the bot of a token, which no error names."""

    def __init__(self, token: str, clock: Clock, url: str = API_URL) -> None:
        self.token = token
        self.url = url.rstrip("/")
        self._clock = clock
        self._limits = DiscordLimits(clock)
        self._http = BoundedHttp(_BYTES_MAX)

    def __repr__(self) -> str:
        return f"DiscordApi({self.url!r})"

    async def get(self, path: str, timeout_s: float = 20.0) -> object:
        """Read what is at a path; returns the JSON. Raises as `call`."""
        return await self.call("GET", path, None, timeout_s)

    async def call(
        self, method: str, path: str, given: Mapping[str, object] | None = None, timeout_s: float = 20.0
    ) -> object:
        """Make a request; returns the JSON of the answer, None without a body.

        Raises DiscordRefused, also where the rate limit asks for more than five seconds, and DiscordUnreachable.
        """
        body = None if given is None else FormBody(json.dumps(given).encode("ascii"), _JSON)
        return await self._call(method, path, body, timeout_s)

    async def upload(self, path: str, form: FormBody) -> object:
        """Post a form with files; returns the JSON of the answer. Raises as `call`."""
        return await self._call("POST", path, form, UPLOAD_S)

    async def _call(self, method: str, path: str, body: FormBody | None, timeout_s: float) -> object:
        route = _route(method, path)
        await self._enter(route)
        attempt = SendTrace()
        try:
            answer = await self._http.call(self._request(method, path, body, timeout_s), attempt)
        except HTTP_ERRORS as error:
            what = f"{type(error).__name__}: {error}".replace(self.token, "TOKEN")
            raise DiscordUnreachable(what, sent=attempt.is_sent) from None
        self._limits.note(route, answer.status, answer.headers)
        try:
            return _result_of(answer.status, answer.headers, answer.body)
        except DiscordRefused as error:
            if error.status == 429:
                self._limits.hold(route, requested_ms(error.retry_after_s or 1.0), everywhere=error.is_global)
            raise

    async def close(self) -> None:
        await self._http.close()

    def _request(self, method: str, path: str, body: FormBody | None, timeout_s: float) -> HttpCall:
        kind, content = (_JSON, None) if body is None else (body.kind, body.content)
        headers = {"Authorization": f"Bot {self.token}", "Content-Type": kind, "User-Agent": _USER_AGENT}
        return HttpCall(method, f"{self.url}{path}", content, headers, timeout_s)

    async def _enter(self, route: str) -> None:
        """Wait for the rate limit of a route; raises DiscordRefused if that takes too long."""
        if self._limits.is_broken:
            what = "1,000 requests were refused in ten minutes; none is sent until it is fewer"
            raise DiscordRefused(429, what, _BROKEN_WAIT_S)
        if (wait := self._limits.wait_ms(route)) > _PATIENT_MS:
            raise DiscordRefused(429, "the rate limit is reached", wait / 1_000)
        if wait > 0:
            await self._clock.wait(asyncio.Event(), wait)


def _route(method: str, path: str) -> str:
    """The method, the names in a path, and the first id in it, which Discord limits apart."""
    words = path.partition("?")[0].strip("/").split("/")
    if "reactions" in words:  # whatever the emoji, it is one route
        words = words[: words.index("reactions") + 1]
    names = "/".join("*" if word.isdecimal() else word for word in words)
    return f"{method} {names} {next((word for word in words if word.isdecimal()), '')}"


def _result_of(status: int, headers: Mapping[str, str], body: bytes) -> object:
    """The JSON of an answer; raises DiscordRefused, and DiscordUnreachable for an answer that is not Discord's."""
    try:
        answer = json.loads(body) if body else None
    except (ValueError, RecursionError):
        answer, is_json = None, False
    else:
        is_json = True
    if 200 <= status < 300 and is_json:
        return answer
    told = answer if isinstance(answer, dict) else {}
    wait_s = seconds(told.get("retry_after"))
    wait_s = seconds(headers.get("retry-after")) if wait_s is None else wait_s
    if not told and status not in (413, 429) and not (status == 503 and wait_s is not None):
        raise DiscordUnreachable(f"HTTP {status}, and no answer of Discord", sent=True)
    what = told.get("message")
    is_global = told.get("global") is True or headers.get("x-ratelimit-global") == "true"
    words = cut(normalise(" ".join(what.split())), _DETAIL_CHARS_MAX) if isinstance(what, str) else "(no reason)"
    raise DiscordRefused(status, words, wait_s, is_global=is_global)


def wait_ms(asked_s: float) -> int:
    """How long to wait where Discord asks for some seconds, in milliseconds."""
    return with_jitter(requested_ms(asked_s)) + 1


def unreachable(error: DiscordUnreachable) -> SendResult:
    """The result of a try without an answer."""
    if error.sent:
        return SendResult(Delivered.DOUBT, f"no answer after sending: {error}")
    return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)


def refused(error: DiscordRefused) -> SendResult:
    """The result of a try that Discord did not accept (spec: channels, C4 and C5)."""
    if error.status == 429 or (error.status == 503 and error.retry_after_s is not None):
        wait = wait_ms(error.retry_after_s or 1.0)
        return SendResult(Delivered.RETRY, f"{error} (rate limit)", retry_after_ms=wait, outage=True)
    if error.status == 401:
        return SendResult(Delivered.RETRY, f"{error}; {BAD_TOKEN}", retry_after_ms=_BAD_TOKEN_WAIT_MS, outage=True)
    if error.status >= 500:
        return SendResult(Delivered.DOUBT, str(error))
    if error.status == 403:
        return SendResult(Delivered.DEAD, f"{error}; the bot may not write there (blocked, removed, or not allowed)")
    if error.status == 404:
        return SendResult(Delivered.DEAD, f"{error}; that channel or thread is gone, and nothing is sent elsewhere")
    return SendResult(Delivered.DEAD, str(error))
