"""The Web API of Slack: one method at a time, bounded, and the result of a refusal for a reply."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from urllib.parse import urlencode

from keepsaid.adapters.channels.http_client import HTTP_ERRORS, BoundedHttp, HttpCall, HttpResult
from keepsaid.adapters.channels.line import requested_ms, with_jitter
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.adapters.channels.slack_files import SlackFiles
from keepsaid.adapters.channels.uploads import UPLOAD_S
from keepsaid.domain.message import Attachment
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.errors import FileRefused
from keepsaid.text.normal import cut, normalise

Answer = Mapping[str, object]

_BYTES_MAX = 16_000_000
_DETAIL_CHARS_MAX = 200
_BAD_TOKEN_WAIT_MS = 60_000
_WAIT_S_MAX = 86_400
BAD_TOKEN = frozenset((
    "account_inactive", "ekm_access_denied", "enterprise_is_restricted", "invalid_auth",
    "missing_scope", "no_permission", "not_allowed_token_type", "not_authed", "org_login_required",
    "team_access_not_granted", "token_expired", "token_revoked", "two_factor_setup_required",
))  # fmt: skip
"""Errors that last until somebody changes the token or the app: replies wait meanwhile."""

_SLOW_DOWN = frozenset(("message_limit_exceeded", "rate_limited", "ratelimited"))
_LATER = (408, 425, 429)
_NOT_DONE = frozenset(("request_timeout",))
_IN_DOUBT = frozenset(("fatal_error", "internal_error", "service_unavailable", "unknown_error"))
_FORMAT = frozenset((
    "invalid_arg_name", "invalid_arguments", "invalid_blocks", "invalid_blocks_format", "markdown_text_conflict",
    "msg_blocks_too_long", "msg_too_long", "no_text", "unknown_arguments",
))  # fmt: skip
_UNABLE = {
    "cannot_reply_to_message": "the message of the thread takes no replies",
    "channel_not_found": "that conversation is gone, or the bot cannot see it; nothing is sent elsewhere",
    "invalid_thread_ts": "the thread is gone; nothing is sent elsewhere",
    "is_archived": "the channel is archived; nothing is sent elsewhere",
    "is_inactive": "the conversation is closed; nothing is sent elsewhere",
    "messages_tab_disabled": "the app takes no direct messages (its settings: App Home, Messages Tab)",
    "not_in_channel": "the bot is not in the channel; invite it there",
    "thread_locked": "the thread is locked; nothing is sent elsewhere",
    "thread_not_found": "the thread is gone; nothing is sent elsewhere",
    "user_not_found": "that person is gone; nothing is sent elsewhere",
}
"""The reason why a reply cannot arrive, by the error that Slack names."""


class SlackUnreachable(Exception):
    """No answer came, or none that can be read; `sent` says whether the request may have arrived."""

    def __init__(self, what: str, *, sent: bool) -> None:
        super().__init__(cut(what, _DETAIL_CHARS_MAX))
        self.sent = sent


class SlackRefused(Exception):
    """Slack did not do what was requested: the error that it names, and the seconds to wait if it says so."""

    def __init__(self, error: str, status: int = 200, retry_after_s: int | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.status = status
        self.retry_after_s = retry_after_s

    @property
    def is_throttled(self) -> bool:
        """Whether Slack wants fewer requests."""
        return self.status == 429 or self.error in _SLOW_DOWN or (self.status == 503 and self.retry_after_s is not None)

    @property
    def is_bad_token(self) -> bool:
        """Whether the token, or what it permits, has to be changed."""
        return self.error in BAD_TOKEN or self.status in (401, 403)

    @property
    def is_format(self) -> bool:
        """Whether Slack refuses the form of a message; plain text may pass."""
        return self.error in _FORMAT

    @property
    def is_not_done(self) -> bool:
        """Whether Slack says that it had no time for it."""
        return self.error in _NOT_DONE

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may have been done nevertheless."""
        return self.error in _IN_DOUBT or self.status >= 500


class SlackApi:
    """Calls the methods of the Web API at `url`, with the token of the bot, or of the app; no error names either."""

    def __init__(self, bot_token: str, app_token: str = "", url: str = "https://slack.com/api") -> None:
        self._bot_token = bot_token
        self._app_token = app_token
        self._url = url.rstrip("/")
        self._http = BoundedHttp(_BYTES_MAX)
        self._files = SlackFiles(bot_token, self._url)

    @property
    def has_app_token(self) -> bool:
        """Whether Socket Mode can be opened."""
        return bool(self._app_token)

    async def call(
        self, method: str, parameters: Mapping[str, object], timeout_s: float = 20.0, *, by_app: bool = False
    ) -> Answer:
        """Call a method, `by_app` with the token of the app; returns its answer.

        Raises SlackRefused and SlackUnreachable.
        """
        headers = {
            "Authorization": f"Bearer {self._app_token if by_app else self._bot_token}",
            "Content-Type": "application/x-www-form-urlencoded",
            "User-Agent": "keepsaid",
        }
        call = HttpCall("POST", f"{self._url}/{method}", _form_of(parameters), headers, timeout_s)
        answer = await self._answer(call)
        return _answer_of(answer.status, answer.headers.get("retry-after"), answer.body)

    async def upload(self, url: str, content: bytes) -> None:
        """Post the bytes of a file to the address that Slack named for it, which needs no token.

        Raises FileRefused where it is not an address of Slack, or the bytes are not taken, SlackRefused where they may
        be later, and SlackUnreachable.
        """
        self._files.check(url)
        headers = {"Content-Type": "application/octet-stream", "User-Agent": "keepsaid"}
        answer = await self._answer(HttpCall("POST", url, content, headers, UPLOAD_S))
        if answer.status >= 500 or answer.status in _LATER:
            raise SlackRefused(f"HTTP {answer.status}", answer.status, _seconds(answer.headers.get("retry-after")))
        if answer.status != 200:
            raise FileRefused(f"Slack answered {answer.status}")

    async def _answer(self, call: HttpCall) -> HttpResult:
        """The answer to a request; raises SlackUnreachable."""
        attempt = SendTrace()
        try:
            return await self._http.call(call, attempt)
        except HTTP_ERRORS as error:
            raise SlackUnreachable(self._masked(f"{type(error).__name__}: {error}"), sent=attempt.is_sent) from None

    def fetch(self, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file. Raises FileRefused and FileUnavailable."""
        return self._files.fetch(file)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
        await self._files.close()

    def _masked(self, what: str) -> str:
        for token in (self._bot_token, self._app_token):
            what = what.replace(token, "TOKEN") if token else what
        return what


def _form_of(parameters: Mapping[str, object]) -> bytes:
    """Parameters as a form, which every method of Slack reads; objects in it are JSON."""
    fields = {name: one if isinstance(one, str) else json.dumps(one) for name, one in parameters.items()}
    return urlencode(fields, errors="replace").encode("ascii")


def _answer_of(status: int, wait: str | None, body: bytes) -> Answer:
    """The answer in a body; raises SlackRefused, and SlackUnreachable for what Slack did not write."""
    retry_after_s = _seconds(wait)
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if status == 429 or (status == 503 and retry_after_s is not None):
        raise SlackRefused("ratelimited" if status == 429 else "service_unavailable", status, retry_after_s)
    if not isinstance(answer, dict):
        raise SlackUnreachable(f"HTTP {status}, and no answer of the Web API", sent=True)
    if answer.get("ok") is True and status < 300:
        return answer
    error = answer.get("error")
    what = cut(normalise(" ".join(error.split())), _DETAIL_CHARS_MAX) if isinstance(error, str) else f"HTTP {status}"
    raise SlackRefused(what, status, retry_after_s)


def _seconds(wait: str | None) -> int | None:
    """The seconds to wait in a header; None if it has none."""
    return min(int(wait), _WAIT_S_MAX) if wait is not None and wait.isascii() and wait.isdecimal() else None


def wait_ms(seconds: int | None) -> int:
    """Milliseconds to wait where Slack asks for some seconds; one second if it does not say."""
    return with_jitter(requested_ms(seconds or 1))


def unreachable(error: SlackUnreachable) -> SendResult:
    """The result of a try without an answer."""
    if error.sent:
        return SendResult(Delivered.DOUBT, f"no answer after sending: {error}")
    return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)


def refused(error: SlackRefused) -> SendResult:
    """The result of a try that Slack did not accept (spec: channels, C4 and C5)."""
    if error.is_throttled:
        wait = wait_ms(error.retry_after_s)
        return SendResult(Delivered.RETRY, f"{error} (rate limit)", retry_after_ms=wait, outage=True)
    if error.is_bad_token:
        what = f"{error}; slack.bot_token is not accepted, or a scope is missing"
        return SendResult(Delivered.RETRY, what, retry_after_ms=_BAD_TOKEN_WAIT_MS, outage=True)
    if error.is_in_doubt:
        return SendResult(Delivered.DOUBT, f"Slack answers {error}")
    if error.is_not_done:
        return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
    if error.error.startswith("restricted_action"):
        return SendResult(Delivered.DEAD, f"{error}; the workspace does not let the bot write there")
    reason = _UNABLE.get(error.error, "Slack does not accept the message")
    return SendResult(Delivered.DEAD, f"{error}; {reason}")
