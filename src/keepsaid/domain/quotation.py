"""The text of a reply target as the medium delivered it with the message, for targets that are not stored here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from keepsaid.domain.message import StoredMessage, Trust, payload_fields
from keepsaid.text.normal import cut, normalise

FIELD = "reply_to_text"
"""The field of `POST /v1/messages` that holds the text."""

_BYTES_MAX = 64_000
_CHARS_MAX = 10_000
_HINTS = (f'"{FIELD}"'.encode(), b'"reply_to_message"', b'"external_reply"')
_UPDATES = ("message", "channel_post", "business_message")
_PLACES = (*_UPDATES, *(f"edited_{name}" for name in _UPDATES))


class DeliveredQuote(NamedTuple):
    """The text of a reply target, its author's id and name; both are "" if the medium did not give them."""

    text: str
    author: str = ""
    name: str = ""


def delivered_quote(payload: bytes) -> DeliveredQuote | None:
    """Read the text of the reply target from the payload of an HTTP message or of a Telegram update.

    Of a Telegram message the part that its sender selected (`quote`) comes before the whole text. None if there is
    no text, and for payloads of more than 64,000 bytes.
    """
    if len(payload) > _BYTES_MAX or not any(hint in payload for hint in _HINTS):
        return None
    body = payload_fields(payload, _BYTES_MAX)
    found = DeliveredQuote(_text(body, FIELD))
    if not found.text:
        found = _of_telegram(next((part for name in _PLACES if (part := _object(body.get(name)))), body))
    return found if found.text else None


def quote_of(message: StoredMessage) -> tuple[DeliveredQuote, Trust] | None:
    """Return the delivered quote of a message and its trust.

    The trust is `external`, unless the author is the sender of the message.
    """
    if (quote := delivered_quote(message.inbound.content.payload)) is None:
        return None
    origin = message.inbound.origin
    return quote, origin.trust if quote.author == origin.sender else Trust.EXTERNAL


def _of_telegram(message: Mapping[str, object]) -> DeliveredQuote:
    target, elsewhere = _object(message.get("reply_to_message")), _object(message.get("external_reply"))
    text = _text(_object(message.get("quote")), "text") or _text(target, "text") or _text(target, "caption")
    people = (target.get("sender_chat"), target.get("from"), _object(elsewhere.get("origin")).get("sender_user"))
    author = next((person for one in people if (person := _object(one))), {})
    names = (_text(author, name) for name in ("first_name", "last_name"))
    name = " ".join(filter(None, names)) or _text(author, "title") or _text(author, "username")
    return DeliveredQuote(text, str(author.get("id", "")), name)


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(source: Mapping[str, object], name: str) -> str:
    value = source.get(name)
    return cut(normalise(value[: 2 * _CHARS_MAX]), _CHARS_MAX).strip() if isinstance(value, str) else ""
