"""The Bot API of Telegram: one method at a time, bounded, and what an answer means for a reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from urllib.parse import quote

from keepsaid.adapters.channels.downloads import FileDownloads
from keepsaid.adapters.channels.http_client import HTTP_ERRORS, BoundedHttp, HttpCall
from keepsaid.adapters.channels.line import requested_ms, with_jitter
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.adapters.channels.uploads import UPLOAD_S, FormBody, Upload, form_of
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.text.normal import cut, normalise

_BYTES_MAX = 16_000_000
_DETAIL_CHARS_MAX = 200
_BAD_TOKEN_WAIT_MS = 60_000


class TelegramUnreachable(Exception):
    """No answer came, or none that can be read; `sent` says whether the request may have arrived."""

    def __init__(self, what: str, *, sent: bool) -> None:
        super().__init__(cut(what, _DETAIL_CHARS_MAX))
        self.sent = sent


class TelegramRefused(Exception):
    """The Bot API did not do what it was asked: its code, its words, and what it says to do instead."""

    def __init__(self, code: int, what: str, parameters: Mapping[str, object]) -> None:
        super().__init__(f"{code}: {what}")
        self.code = code
        self.what = what
        self._parameters = parameters

    @property
    def retry_after_s(self) -> int | None:
        """Seconds to wait before the next request; None if it does not say."""
        return self._number("retry_after")

    @property
    def migrated_to(self) -> int | None:
        """The chat that the one named has become."""
        return self._number("migrate_to_chat_id")

    def _number(self, name: str) -> int | None:
        found = self._parameters.get(name)
        return found if isinstance(found, int) and not isinstance(found, bool) else None


class TelegramApi:
    """Calls the methods of the Bot API at `url` for the bot of a token, which no error names."""

    def __init__(self, token: str, url: str = "https://api.telegram.org") -> None:
        self._token = token
        self._url = url.rstrip("/")
        self._http = BoundedHttp(_BYTES_MAX)
        self._files = FileDownloads("Telegram", self._url)

    async def call(self, method: str, parameters: Mapping[str, object], timeout_s: float = 20.0) -> object:
        """Call a method; returns its result. Raises TelegramRefused and TelegramUnreachable."""
        body = FormBody(json.dumps(parameters).encode("ascii"), "application/json")
        return await self._call(method, body, timeout_s)

    async def upload(self, method: str, parameters: Mapping[str, object], field: str, file: Upload) -> object:
        """Call a method that takes a file in a field; returns its result. Raises what `call` does."""
        fields = {name: one if isinstance(one, str) else json.dumps(one) for name, one in parameters.items()}
        return await self._call(method, await asyncio.to_thread(form_of, fields, {field: file}), UPLOAD_S)

    async def _call(self, method: str, body: FormBody, timeout_s: float) -> object:
        attempt = SendTrace()
        headers = {"Content-Type": body.kind, "User-Agent": "keepsaid"}
        request = HttpCall("POST", f"{self._url}/bot{self._token}/{method}", body.content, headers, timeout_s)
        try:
            answer = await self._http.call(request, attempt)
        except HTTP_ERRORS as error:
            what = f"{type(error).__name__}: {error}".replace(self._token, "TOKEN")
            raise TelegramUnreachable(what, sent=attempt.is_sent) from None
        return _result_of(answer.status, answer.body)

    async def fetch(self, file_id: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a file of up to 20 MB. Raises FileRefused and FileUnavailable."""
        try:
            found = await self.call("getFile", {"file_id": file_id})
        except TelegramUnreachable:
            raise FileUnavailable("Telegram cannot be reached") from None
        except TelegramRefused as error:
            if error.code == 429 or error.code >= 500 or error.code == 401:
                raise FileUnavailable(f"Telegram answered {error.code}", error.retry_after_s) from None
            raise FileRefused(f"Telegram does not hand it out: {error.what}") from None
        path = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(path, str) or not path:
            raise FileUnavailable("Telegram does not say where it is")
        async with aclosing(self._files.pieces(f"{self._url}/file/bot{self._token}/{quote(path)}")) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        await self._http.close()
        await self._files.close()


def _result_of(status: int, body: bytes) -> object:
    """The result in an answer; raises TelegramRefused, and TelegramUnreachable for any other answer."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise TelegramUnreachable(f"HTTP {status}, and no answer of the Bot API", sent=True)
    if answer.get("ok") is True:
        return answer.get("result")
    code, what, parameters = (answer.get(name) for name in ("error_code", "description", "parameters"))
    told = cut(normalise(" ".join(what.split())), _DETAIL_CHARS_MAX) if isinstance(what, str) else ""
    known = code if isinstance(code, int) and not isinstance(code, bool) else status
    raise TelegramRefused(known, told, parameters if isinstance(parameters, dict) else {})


_GONE = ("chat not found", "message thread not found", "topic_deleted", "topic_closed", "user is deactivated")
"""What Telegram says of a place where nothing can be sent any more."""


def wait_ms(seconds: int) -> int:
    """How long to wait where Telegram asks for some seconds, in milliseconds."""
    return with_jitter(requested_ms(seconds))


def unreachable(error: TelegramUnreachable) -> SendResult:
    """The result of a try without an answer."""
    if error.sent:
        return SendResult(Delivered.DOUBT, f"no answer after sending: {error}")
    return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)


def refused(error: TelegramRefused) -> SendResult:
    """The result of a try that Telegram did not accept (spec: channels, C4 and C5)."""
    if error.code == 429 or (error.retry_after_s is not None and error.code >= 500):
        wait = wait_ms(error.retry_after_s or 1)
        return SendResult(Delivered.RETRY, f"{error} (rate limit)", retry_after_ms=wait, outage=True)
    if error.code in (401, 404):
        what = f"{error}; telegram.token is not accepted"
        return SendResult(Delivered.RETRY, what, retry_after_ms=_BAD_TOKEN_WAIT_MS, outage=True)
    if error.code >= 500:
        return SendResult(Delivered.DOUBT, str(error))
    if error.code == 403:
        return SendResult(Delivered.DEAD, f"{error}; the bot may not write there (blocked, or removed)")
    if any(words in error.what.lower() for words in _GONE):
        return SendResult(Delivered.DEAD, f"{error}; that place is gone, and nothing is sent elsewhere")
    return SendResult(Delivered.DEAD, str(error))
