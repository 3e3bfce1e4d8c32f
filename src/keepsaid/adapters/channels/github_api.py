"""The REST API of GitHub: one request at a time, bounded, and what an answer means for what was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import field
from functools import partial
from urllib.parse import urljoin, urlsplit

import httpx2

from keepsaid.adapters.channels.http_client import HTTP_ERRORS, LazyClient, plain_client
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

JSON = "application/vnd.github+json"
DIFF = "application/vnd.github.diff"
_VERSION = "2022-11-28"
_DETAIL_CHARS_MAX = 200
_REDIRECTS_MAX = 3
_KEPT_METHOD = (307, 308)
_CONNECTIONS = httpx2.Limits(max_connections=8, max_keepalive_connections=4, keepalive_expiry=2.0)


@frozen
class ApiAnswer:
    """An answer; `whole` is false where the body was longer than what was read."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool = True

    @property
    def json(self) -> object:
        """The body as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def message(self) -> str:
        """What GitHub says of a failure."""
        found = self.json
        said = found.get("message") if isinstance(found, dict) else None
        return cut(normalise(" ".join(said.split())), _DETAIL_CHARS_MAX) if isinstance(said, str) else ""


class ApiUnreachable(Exception):
    """No answer came; `sent` says whether the request may have arrived."""

    def __init__(self, error: Exception, *, sent: bool) -> None:
        # the error's own words name addresses at most, never the token
        super().__init__(cut(f"{type(error).__name__}: {error}", _DETAIL_CHARS_MAX))
        self.sent = sent


@frozen
class ApiRequest:
    """What is asked: a path below the API's address, with its query."""

    method: str
    path: str
    content: Mapping[str, object] | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = JSON
    bytes_max: int = 4_000_000


class GitHubApi:
    """Calls the API at `url` with a token. Redirects are followed within the API alone."""

    def __init__(self, token: str, url: str = "https://api.github.com", timeout_s: float = 20.0) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "X-GitHub-Api-Version": _VERSION, "User-Agent": "keepsaid"}
        self._timeout_s = timeout_s
        self._limits = httpx2.Timeout(timeout_s, connect=timeout_s / 4, pool=timeout_s / 4)
        self._client = LazyClient(partial(plain_client, _CONNECTIONS))

    async def call(self, request: ApiRequest) -> ApiAnswer:
        """Make a request; raises ApiUnreachable."""
        url, attempt = f"{self._url}{request.path}", SendTrace()
        try:
            async with asyncio.timeout(self._timeout_s):
                for _ in range(_REDIRECTS_MAX):
                    answer = await self._once(request, url, attempt)
                    if not (url := self._moved(request, url, answer)):
                        return answer
                return answer
        except HTTP_ERRORS as error:
            raise ApiUnreachable(error, sent=attempt.is_sent) from error

    async def close(self) -> None:
        await self._client.close()

    async def _once(self, request: ApiRequest, url: str, attempt: SendTrace) -> ApiAnswer:
        client = await self._client.opened()
        content = None if request.content is None else json.dumps(request.content).encode("ascii")
        headers = {**self._headers, "Accept": request.accept, "Accept-Encoding": "identity"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        made = client.build_request(
            request.method,
            url,
            content=content,
            headers=headers,
            params=request.query or None,
            timeout=self._limits,
            extensions={"trace": attempt.note},
        )
        response = await client.send(made, stream=True, follow_redirects=False)
        body = bytearray()
        async with aclosing(response):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > request.bytes_max:
                    break
        whole = len(body) <= request.bytes_max
        return ApiAnswer(response.status_code, response.headers, bytes(body[: request.bytes_max]), whole)

    def _moved(self, request: ApiRequest, url: str, answer: ApiAnswer) -> str:
        """Where the same request is to be made instead, "" for nowhere: a renamed repository redirects."""
        place = answer.headers.get("location", "")
        kept = answer.status in _KEPT_METHOD or (request.method == "GET" and answer.status in (301, 302))
        if not (place and kept):
            return ""
        there, here = urlsplit(urljoin(url, place)), urlsplit(self._url)
        return there.geturl() if (there.scheme, there.netloc) == (here.scheme, here.netloc) else ""


_FORBIDDEN = "the token may not do that; it needs write access to issues and pull requests"
_RATE_WAIT_MS = 60_000
_WAIT_MS_MAX = 3_600_000
_TOKEN_WAIT_MS = 300_000
_DOUBT_WAIT_MS = 5_000
"""GitHub lists a new comment a moment after it was made."""


def unreachable(error: ApiUnreachable) -> SendResult:
    """The result of a try without an answer."""
    if error.sent:
        return SendResult(Delivered.DOUBT, f"no answer: {error}", retry_after_ms=_DOUBT_WAIT_MS, outage=True)
    return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)


def refused(answer: ApiAnswer, now_s: float) -> SendResult:
    """The result of a try that GitHub did not accept; `now_s` is the time, seconds UTC.

    What GitHub will accept later is tried again, however often. After an internal error the comment may exist.
    """
    detail = f"HTTP {answer.status}" + (f": {answer.message}" if answer.message else "")
    if (wait := _rate_wait_ms(answer, now_s)) is not None:
        return SendResult(Delivered.RETRY, f"{detail} (rate limit)", retry_after_ms=wait, outage=True)
    if answer.status == 401:
        what = f"{detail}; github.token is not accepted"
        return SendResult(Delivered.RETRY, what, retry_after_ms=_TOKEN_WAIT_MS, outage=True)
    if answer.status >= 500:
        return SendResult(Delivered.DOUBT, detail, retry_after_ms=_DOUBT_WAIT_MS, outage=True)
    if answer.status == 408:
        return SendResult(Delivered.RETRY, detail, outage=True)
    return SendResult(Delivered.DEAD, f"{detail}; {_FORBIDDEN}" if answer.status == 403 else detail)


def _rate_wait_ms(answer: ApiAnswer, now_s: float) -> int | None:
    """How long to wait for a rate limit; None where it is none."""
    after, left = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-remaining", "")
    is_limit = after.isdecimal() or left == "0" or "rate limit" in answer.message.lower()
    if answer.status not in (403, 429) or not (is_limit or answer.status == 429):
        return None
    if after.isdecimal():
        return min(int(after[:9]) * 1_000, _WAIT_MS_MAX)
    reset = answer.headers.get("x-ratelimit-reset", "")
    if left == "0" and reset.isdecimal():
        return int(min(max(int(reset[:12]) - now_s, 1) * 1_000, _WAIT_MS_MAX))
    return _RATE_WAIT_MS
