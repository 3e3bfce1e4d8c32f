"""Push: replies posted to a URL that the sender named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import replace

import httpx2

from keepsaid.adapters.channels.http_client import HTTP_ERRORS, LazyClient, plain_client
from keepsaid.adapters.channels.pull import allowed
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.domain import ids, message
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.text.normal import cut, normalise

_ANSWER_BYTES_MAX = 64 * 1024
_DETAIL_CHARS_MAX = 200
_TRY_AGAIN = frozenset((408, 425, 429))
_RETRY_AFTER_S_MAX = 24 * 3_600
_CONNECTIONS = httpx2.Limits(max_connections=32, max_keepalive_connections=8, keepalive_expiry=2.0)


class PushChannel:
    """A channel that posts each reply to the URL its message named, with an idempotency key.

    A reply without a URL waits to be pulled, so `sending` says pull; the outbox sends what carries a URL.
    One try takes at most `timeout_s` seconds, of which connecting and securing may take a quarter each. `client`
    makes the HTTP client; by default one that reads no proxy from the environment, so that it calls listed hosts
    and nothing else.
    """

    sending = Sending.PULL

    def __init__(
        self,
        name: str,
        allowed_hosts: Iterable[str],
        timeout_s: float = 10.0,
        client: Callable[[], httpx2.AsyncClient] | None = None,
    ) -> None:
        self.name = name
        self._hosts = frozenset(allowed_hosts)
        self._timeout_s = timeout_s
        # Connecting must end by its own limits: cut off from outside, the transport leaves its socket open.
        self._limits = httpx2.Timeout(timeout_s, connect=timeout_s / 4, pool=timeout_s / 4)
        self._client = LazyClient(client or _plain_client)

    async def send(self, reply: StoredReply) -> SendResult:
        """Post a reply once; never raises.

        Confirmed by 2xx, or by 409: the receiver has it already. To be tried again after 408, 425, 429, 5xx, or
        when nothing was sent. In doubt when it may have arrived: no answer, or none that can be read. Dead after
        any other status, redirects included. Refused when the URL is not allowed.
        """
        url = reply.draft.url
        reason = allowed(url, self._hosts) if url is not None else "the message named no reply_url"
        if url is None or reason is not None:
            return SendResult(Delivered.REFUSED, reason or "")
        attempt = _Attempt()
        try:
            client = await self._client.opened()
            async with asyncio.timeout(self._timeout_s):
                return await self._post(client, url, reply, attempt)
        except HTTP_ERRORS as error:
            return attempt.verdict or _unanswered(error, attempt.is_sent)

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, client: httpx2.AsyncClient, url: str, reply: StoredReply, attempt: _Attempt) -> SendResult:
        content, traced = _body(reply), {"trace": attempt.note}
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "Idempotency-Key": reply.key}
        if reply.possible_duplicate:
            headers["Keepsaid-Possible-Duplicate"] = "true"
        request = client.build_request(
            "POST", url, content=content, headers=headers, timeout=self._limits, extensions=traced
        )
        response = await client.send(request, stream=True, follow_redirects=False)
        async with aclosing(response):
            attempt.verdict = _answered(response)
            if response.is_success:
                attempt.verdict = replace(attempt.verdict, provider_id=await _read_provider_id(response))
        return attempt.verdict


class _Attempt(SendTrace):
    """What is known of one try while it runs: an error after the status cannot undo what the status said."""

    verdict: SendResult | None = None


def _plain_client() -> httpx2.AsyncClient:
    # Receivers that keep idle connections for 5 s would cut some just as they are used again, which is a doubt.
    return plain_client(_CONNECTIONS)


def _body(reply: StoredReply) -> bytes:
    told = {
        "id": ids.show("reply", reply.id),
        "conversation": reply.lane.conversation,
        "lane": reply.lane.key,
        "topic": message.topic_of(reply.lane),
        "text": reply.draft.text,
        "notice": reply.draft.notice,
        "possible_duplicate": reply.possible_duplicate,
        "reply_to": reply.draft.reply_to,
        "turn": ids.show("turn", reply.turn_id) if reply.turn_id is not None else None,
    }
    return json.dumps(told).encode("ascii")


def _answered(response: httpx2.Response) -> SendResult:
    status = response.status_code
    if response.is_success:
        return SendResult(Delivered.CONFIRMED)
    if status == 409:
        return SendResult(Delivered.CONFIRMED, "HTTP 409: the receiver had it already")
    if status in _TRY_AGAIN or status >= 500:
        return SendResult(Delivered.RETRY, f"HTTP {status}", retry_after_ms=_retry_after_ms(response))
    if response.has_redirect_location:
        return SendResult(Delivered.DEAD, f"HTTP {status}: redirects are not followed")
    return SendResult(Delivered.DEAD, f"HTTP {status}")


def _retry_after_ms(response: httpx2.Response) -> int | None:
    value = response.headers.get("retry-after", "").strip()
    if not (value.isascii() and value.isdigit()):
        return None
    return min(int(value[:9]), _RETRY_AFTER_S_MAX) * 1_000


async def _read_provider_id(response: httpx2.Response) -> str | None:
    body = b""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _ANSWER_BYTES_MAX:
            return None
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    given = answer.get("id") if isinstance(answer, dict) else None
    if isinstance(given, bool) or not isinstance(given, str | int):
        return None
    return cut(normalise(str(given)).strip(), _DETAIL_CHARS_MAX) or None


def _unanswered(error: Exception, sent: bool) -> SendResult:
    # The error's own words name addresses at most, never the URL, which may carry a token.
    detail = cut(f"{type(error).__name__}: {error}", _DETAIL_CHARS_MAX)
    if sent:
        return SendResult(Delivered.DOUBT, f"no answer after sending: {detail}")
    if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol | ValueError):
        return SendResult(Delivered.DEAD, f"the URL cannot be used: {detail}")
    return SendResult(Delivered.RETRY, f"not sent: {detail}")
