"""GitHub webhooks: proved by their signature, read without trusting their shape."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from keepsaid.adapters.channels import github_events as events
from keepsaid.domain.message import Content, Inbound, Marks, Origin, Trust
from keepsaid.domain.reply import Delivered, Reply, Sending, SendResult
from keepsaid.errors import Forged, HookClosed, InputError
from keepsaid.text.json_reader import Unreadable, read_json

_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})", re.ASCII)
_HEADER_CHARS_MAX = 200
_PING = frozenset(("zen", "hook_id", "hook"))
_FORM = "application/x-www-form-urlencoded"


class GitHubHook:
    """The webhook of one secret; a channel and a hook.

    Without a secret it takes nothing. All of it is `external`: a signature proves that GitHub sent it, not
    that its author may be believed. Everything about one issue or pull request is one lane.
    """

    name = "github"
    sending = Sending.NONE

    def __init__(self, secret: str, account: str = "default", priority: int = 50) -> None:
        self._secret = secret.encode("utf-8", "surrogateescape") if secret.strip() else b""
        self._account = account
        self._priority = priority

    def read(self, headers: Mapping[str, str], body: bytes) -> Inbound | None:
        """The message in a delivery; None for a ping.

        `headers` are lower-case. `external_id` is the delivery's GUID, which a redelivery repeats. The stored
        payload is the JSON document: the body as received, or what a form carries in `payload`. Raises
        HookClosed without a secret, Forged for any other signature than HMAC-SHA256 of the body, InputError
        for a body that is no JSON object.
        """
        self._prove(headers.get("x-hub-signature-256", ""), body)
        event = _required(headers, "x-github-event")
        if event == "ping":
            return None
        delivery = _required(headers, "x-github-delivery")
        document = _document(headers.get("content-type", ""), body)
        payload = _parsed(document)
        if payload.keys() >= _PING:
            return None  # the event's name is not signed: a replayed ping stays a ping
        sender, login = events.sender(payload)
        return Inbound(
            Origin(self.name, self._account, events.conversation(payload), sender, login, trust=Trust.EXTERNAL),
            Content(document, events.summary(event, payload), events.event_name(event, payload)),
            Marks(delivery, events.provider_id(event, payload)),
            priority=self._priority,
        )

    async def send(self, reply: Reply) -> SendResult:  # noqa: ARG002 - the port's signature
        """Refuse: there are no credentials to write to GitHub with."""
        return SendResult(Delivered.REFUSED, "GitHub has no way to reply yet: no credentials")

    async def close(self) -> None:
        """Do nothing: it holds no connection."""

    def _prove(self, signature: str, body: bytes) -> None:
        if not self._secret:
            raise HookClosed("The GitHub webhook is closed: no secret is configured")
        given = _SIGNATURE.fullmatch(signature)
        if given is None:
            raise Forged("The webhook has no sha256 signature" if not signature else "The signature is malformed")
        if not hmac.compare_digest(given.group(1), hmac.digest(self._secret, body, "sha256").hex()):
            raise Forged("The signature does not belong to this body and secret")


def _required(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "").strip()
    if not value:
        raise InputError(f"The webhook has no {name} header")
    if len(value) > _HEADER_CHARS_MAX or not (value.isascii() and value.isprintable()):
        raise InputError(f"The webhook's {name} header cannot be read")
    return value


def _document(content_type: str, body: bytes) -> bytes:
    if content_type.partition(";")[0].strip().lower() != _FORM:
        return body
    fields = [field.removeprefix(b"payload=") for field in body.split(b"&") if field.startswith(b"payload=")]
    if len(fields) != 1:
        raise InputError("A webhook sent as a form needs one field named payload")
    return unquote_to_bytes(fields[0].replace(b"+", b" "))


def _parsed(document: bytes) -> events.Payload:
    try:
        payload = read_json(document)
    except Unreadable as error:
        raise InputError(f"The webhook's body is no JSON that can be read: {error}") from error
    if not isinstance(payload, dict):
        raise InputError("The webhook's body is no JSON object")
    return payload
