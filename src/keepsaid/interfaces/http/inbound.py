"""Inbound: a JSON message, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from keepsaid.config import Config
from keepsaid.domain.message import Content, Inbound, Marks, Origin
from keepsaid.errors import InputError, UnknownChannel
from keepsaid.interfaces.http.problems import BadRequest
from keepsaid.text.normal import cut, kind_of

_TEXTS = ("text", "channel", "account", "sender", "conversation", "name")
_OPTIONAL = ("provider_id", "reply_to", "topic", "reply_url")
_KNOWN = (*_TEXTS, *_OPTIONAL, "direct", "data")
_KEY_CHARS_MAX = 512
_QUOTED_MAX = 80
"""Characters of a caller's own text that an answer quotes; a nearest name is looked for in no more."""


def inbound_of(config: Config, fields: Mapping[str, object], body: bytes, key: str | None) -> Inbound:
    """The message in a JSON body; raises InputError naming the field that is wrong.

    `text`, `sender` and `conversation` are needed; null in any other field is as if it were not there. `key` is
    the Idempotency-Key. `data` may hold anything: it is kept with the raw body, and rules can read it.
    """
    for field in fields:
        if field not in _KNOWN:
            name = cut(field, _QUOTED_MAX)
            near = get_close_matches(name, _KNOWN, 1)
            raise BadRequest(f"unknown field {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    text = _text(fields, "text", None)
    channel = _text(fields, "channel", "http")
    settings = config.channels.get(channel)
    if settings is None or not settings.enabled:
        known = ", ".join(sorted(name for name, one in config.channels.items() if one.enabled))
        raise UnknownChannel(f"there is no channel {cut(channel, _QUOTED_MAX)!r}; known: {known}")
    if key is not None and not 0 < len(key) <= _KEY_CHARS_MAX:
        raise InputError(f"the Idempotency-Key needs 1 to {_KEY_CHARS_MAX} characters")
    said_by = _text(fields, "sender", None)
    place = _text(fields, "account", "default"), _text(fields, "conversation", None)
    origin = Origin(channel, *place, said_by, _text(fields, "name", ""), _flag(fields, "direct"))
    trusted = Origin(channel, *place, said_by, origin.name, origin.direct, config.trust_of(origin))
    provider_id, reply_to, topic, reply_url = (_optional(fields, name) for name in _OPTIONAL)
    if reply_url is not None:
        _check_url(reply_url, channel, settings.reply_hosts)
    marks = Marks(key, provider_id, reply_to)
    return Inbound(trusted, Content(body, text), marks, settings.priority, topic, reply_url)


def _text(fields: Mapping[str, object], name: str, default: str | None) -> str:
    value = fields.get(name)
    value = default if value is None else value
    if value is None:
        raise InputError(f"the field {name!r} is missing")
    if not isinstance(value, str):
        raise InputError(f"the field {name!r} must be text, not {kind_of(value)}")
    return value


def _optional(fields: Mapping[str, object], name: str) -> str | None:
    return None if fields.get(name) is None else _text(fields, name, None)


def _flag(fields: Mapping[str, object], name: str) -> bool:
    value = False if fields.get(name) is None else fields[name]
    if not isinstance(value, bool):
        raise InputError(f"the field {name!r} must be true or false")
    return value


def _check_url(url: str, channel: str, hosts: tuple[str, ...]) -> None:
    from keepsaid.app.channels import url_refused  # noqa: PLC0415 - the rule belongs to the channel that pushes

    reason = url_refused(url, hosts)
    if reason is not None:
        raise InputError(reason, hint=f"add the host to channels.{channel}.reply_hosts")
