"""The client-server API of Matrix: one request at a time, bounded, and the result of a refusal for a reply.

Source: Matrix specification v1.16, client-server API; spec channels, C4 and section 9.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from urllib.parse import quote, urlencode

from keepsaid.adapters.channels.http_client import HTTP_ERRORS, BoundedHttp, HttpCall
from keepsaid.adapters.channels.line import REQUESTED_MS_MAX, with_jitter
from keepsaid.adapters.channels.matrix.files import MatrixFiles
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.adapters.channels.uploads import UPLOAD_S
from keepsaid.domain.message import Attachment
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.text.normal import cut, normalise

Answer = Mapping[str, object]

_BYTES_MAX = 32_000_000
_TOKEN = re.compile(r"[!-~]+")
_DETAIL_CHARS_MAX = 200
_BAD_TOKEN_WAIT_MS = 60_000
_WAIT_MS_MAX = 86_400_000
_SYNC, _KEYS_QUERY = "/sync", "/keys/query"
"""A sync waits for news and is repeated by the line; a query of keys is a POST that changes nothing."""

TOO_LONG = "the answer is too long"
"""The error of BoundedHttp for an answer above 32 MB; a smaller one may be requested."""

_BAD_TOKEN = frozenset((
    "M_CONSENT_NOT_GIVEN", "M_MISSING_TOKEN", "M_UNKNOWN_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED",
    "M_USER_SUSPENDED",
))  # fmt: skip
"""Errors that last until somebody changes the token or unlocks the account: replies wait meanwhile."""

_FORMAT = frozenset(("M_BAD_JSON", "M_INVALID_PARAM", "M_NOT_JSON", "M_TOO_LARGE", "M_UNKNOWN"))
_UNABLE = {
    "M_FORBIDDEN": "the account is not in that room any more, or may not write there; nothing is sent elsewhere",
    "M_NOT_FOUND": "that room is gone; nothing is sent elsewhere",
    "M_TOO_LARGE": "the event is larger than the server takes",
    "M_GUEST_ACCESS_FORBIDDEN": "guests may not write there",
}
"""The reason why a reply cannot arrive, by the code of the error."""


class MatrixUnreachable(Exception):
    """No answer came, or none that can be read; `sent` says whether the request may have arrived."""

    def __init__(self, what: str, *, sent: bool) -> None:
        super().__init__(cut(what, _DETAIL_CHARS_MAX))
        self.sent = sent

    @property
    def is_too_long(self) -> bool:
        """Whether the answer was longer than this client reads."""
        return TOO_LONG in str(self)


class MatrixRefused(Exception):
    """The server did not do what was requested: its status, the code of the error, and its words.

    `retry_after_ms` is the wait that it asks for, None where it asks for none.
    """

    def __init__(self, status: int, code: str, what: str = "", retry_after_ms: int | None = None) -> None:
        super().__init__(cut(": ".join(filter(None, (code or f"HTTP {status}", what))), _DETAIL_CHARS_MAX))
        self.status = status
        self.code = code
        self.retry_after_ms = retry_after_ms

    @property
    def is_throttled(self) -> bool:
        """Whether the server wants fewer requests."""
        return (
            self.status == 429
            or self.code == "M_LIMIT_EXCEEDED"
            or (self.status == 503 and self.retry_after_ms is not None)
        )

    @property
    def is_bad_token(self) -> bool:
        """Whether the token has to be changed, or the account is locked."""
        return self.status == 401 or self.code in _BAD_TOKEN

    @property
    def is_format(self) -> bool:
        """Whether the server refuses the form of a message; plain text may pass."""
        return self.status in (400, 413) and self.code in _FORMAT

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may have been done nevertheless."""
        return self.status >= 500 and not self.is_throttled

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later. An answer without a code is not by Matrix, but by a proxy."""
        is_other = not self.code or self.code == "M_RESOURCE_LIMIT_EXCEEDED"
        return self.is_throttled or self.is_bad_token or self.is_in_doubt or is_other


class MatrixApi:
    """Calls the homeserver at `url` with an access token; no error names the token."""

    def __init__(self, token: str, url: str) -> None:
        self._token = token
        self._url = url.rstrip("/")
        self._http = BoundedHttp(_BYTES_MAX)
        self._files = MatrixFiles(token, self._url)

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        query: Mapping[str, str | int] | None = None,
        timeout_s: float = 20.0,
    ) -> Answer:
        """Make a request below `/_matrix/client/v3`; returns the object that the server answers.

        What only reads is asked once more where no answer came: one sync needs many such requests, and a line that
        begins again with the first of them would not get past a server that fails now and then. Raises MatrixRefused
        and MatrixUnreachable.
        """
        content = None if body is None else json.dumps(body).encode("ascii")
        whole = f"/_matrix/client/v3{path}{f'?{urlencode(query)}' if query else ''}"
        call = partial(self._call, method, whole, content, "application/json", timeout_s)
        try:
            return await call()
        except (MatrixRefused, MatrixUnreachable) as error:
            if path == _SYNC or not (method == "GET" or path == _KEYS_QUERY) or not _may_pass_at_once(error):
                raise
        return await call()

    async def media(self, method: str, path: str, content: bytes = b"", kind: str = "application/json") -> Answer:
        """Make a request of the content repository, at a whole path. Raises as `call`."""
        return await self._call(method, path, content, kind, UPLOAD_S if content else 20.0)

    async def _call(self, method: str, path: str, content: bytes | None, kind: str, timeout_s: float) -> Answer:
        if self._token and not _TOKEN.fullmatch(self._token):
            raise MatrixRefused(401, "M_UNKNOWN_TOKEN", "the token has spaces, line breaks or letters that none has")
        attempt = SendTrace()
        headers = {"User-Agent": "keepsaid"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if content is not None:
            headers["Content-Type"] = kind
        try:
            answer = await self._http.call(HttpCall(method, f"{self._url}{path}", content, headers, timeout_s), attempt)
        except HTTP_ERRORS as error:
            what = f"{type(error).__name__}: {error}"
            what = what.replace(self._token, "TOKEN") if self._token else what
            raise MatrixUnreachable(what, sent=attempt.is_sent) from None
        return _answer_of(answer.status, answer.headers.get("retry-after"), answer.body)

    def fetch(self, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file. Raises FileRefused and FileUnavailable."""
        return self._files.fetch(file)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
        await self._files.close()


def _may_pass_at_once(error: MatrixRefused | MatrixUnreachable) -> bool:
    """Whether the same request may succeed without a wait."""
    return error.is_in_doubt if isinstance(error, MatrixRefused) else not error.is_too_long


def path_of(*names: str) -> str:
    """The path of a resource: each name is quoted, so that none of them can reach another resource."""
    return "".join(f"/{quote(name, safe='', errors='replace')}" for name in names)


def _answer_of(status: int, wait: str | None, body: bytes) -> Answer:
    """The answer in a body; raises MatrixRefused, and MatrixUnreachable for a success that cannot be read."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if 200 <= status < 300:
        if not isinstance(answer, dict):
            raise MatrixUnreachable(f"HTTP {status}, and no answer of Matrix", sent=True)
        return answer
    told = answer if isinstance(answer, dict) else {}
    code, what = (_words(told.get(name)) for name in ("errcode", "error"))
    raise MatrixRefused(status, code, what, _retry_after_ms(told.get("retry_after_ms"), wait))


def _words(told: object) -> str:
    return cut(normalise(" ".join(told.split())), _DETAIL_CHARS_MAX) if isinstance(told, str) else ""


def _retry_after_ms(told: object, header: str | None) -> int | None:
    """The wait that a refusal asks for, milliseconds: by the header, else by the older field in the body."""
    if header is not None and header.isascii() and header.isdecimal():
        return min(int(header[:9]) * 1_000, _WAIT_MS_MAX)
    if isinstance(told, bool) or not isinstance(told, int | float) or not math.isfinite(told):
        return None
    return int(min(max(told, 0), _WAIT_MS_MAX))


def wait_ms(asked: int | None) -> int:
    """Milliseconds to wait where the server asks for some; one second if it does not say."""
    return with_jitter(min(1_000 if asked is None else asked, REQUESTED_MS_MAX))


def unreachable(error: MatrixUnreachable) -> SendResult:
    """The result of a try without an answer."""
    if error.sent:
        return SendResult(Delivered.DOUBT, f"no answer after sending: {error}")
    return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)


def refused(error: MatrixRefused) -> SendResult:
    """The result of a try that the server did not accept (spec: channels, C4 and C5)."""
    if error.is_throttled:
        wait = wait_ms(error.retry_after_ms)
        return SendResult(Delivered.RETRY, f"{error} (rate limit)", retry_after_ms=wait, outage=True)
    if error.is_bad_token:
        what = f"{error}; matrix.token is not accepted"
        return SendResult(Delivered.RETRY, what, retry_after_ms=_BAD_TOKEN_WAIT_MS, outage=True)
    if error.is_in_doubt:
        return SendResult(Delivered.DOUBT, f"the homeserver answers {error}")
    if error.passes:
        return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
    reason = _UNABLE.get(error.code, "the homeserver does not accept the message")
    return SendResult(Delivered.DEAD, f"{error}; {reason}")
