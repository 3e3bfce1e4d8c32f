"""Which conversation a call belongs to, and whether it is a background call: by headers or by its messages (A2, A6)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import quote, unquote

from starlette.requests import Request

from keepsaid.config.openai import OpenAIConfig
from keepsaid.domain.chat_call import ChatTurn
from keepsaid.domain.principal import Principal
from keepsaid.interfaces.http.openai.problems import BadParameter
from keepsaid.text.normal import digest, is_storable, kind_of

OWN = "x-keepsaid-conversation"
"""The header that names a conversation before any other; the same name as in the calls of agents."""

_KEYS = ("idempotency-key", "x-keepsaid-message")
_ANSWER = "x-keepsaid-answer"
_CHAT, _TEMPORARY = "x-openwebui-chat-id", "local:"
_PERSON, _PERSON_CALLED = "x-openwebui-user-id", "x-openwebui-user-name"
_CHARS_MAX, _CALLED_CHARS_MAX = 200, 100
_UNFILLED = "{{"
"""What begins a placeholder that a client did not fill in."""


def speaker_of(request: Request, who: Principal, fields: Mapping[str, object]) -> Principal:
    """Who speaks: the person that a call names, where its key is that of a program with people of its own.

    The protocol replaces the field `user` by `safety_identifier` and one that names no person. Raises BadParameter.
    """
    given = (fields.get("safety_identifier"), fields.get("user"), _header(request, _PERSON))
    for name, value in zip(("safety_identifier", "user"), given, strict=False):
        if who.people and value is not None and not isinstance(value, str):
            raise BadParameter(f"{name} must be text, not {kind_of(value)}", name)
    person = next((one.strip() for one in given if isinstance(one, str) and one.strip()), "")
    called = unquote(_header(request, _PERSON_CALLED))  # the client sends it as part of an address
    return who.speaking_as(_fitting(person), called[:_CALLED_CHARS_MAX] if is_storable(called) else "")


def conversation_of(request: Request, settings: OpenAIConfig, who: Principal, turn: ChatTurn) -> str:
    """The name of the conversation of a call. Raises BadParameter where it must be named, and is not."""
    return named_conversation(request, settings, who) or _of_person(who, f"chat-{turn.opening}")


def named_conversation(
    request: Request, settings: OpenAIConfig, who: Principal, named: str = "", otherwise: str = ""
) -> str:
    """The conversation that a body names (`named`), or the headers of a call, or `otherwise`; "" for none.

    Raises BadParameter.
    """
    own = named or _header(request, OWN)
    if own and (len(own) > _CHARS_MAX or not is_storable(own)):
        what = f"a conversation must have 1 to {_CHARS_MAX} characters, none of them NUL or half a surrogate pair"
        raise BadParameter(what, "conversation" if named else OWN)
    found = own or next((given for name in settings.conversation_headers if (given := _header(request, name))), "")
    found = found or otherwise
    if not found and not who.direct and not who.everything:
        raise BadParameter(f"others are in the conversations of this key: name the conversation in {OWN}", OWN)
    return _of_person(who, _fitting(found)) if found else ""


def is_temporary(request: Request, named: str = "") -> bool:
    """Whether a call belongs to a temporary chat, which is not remembered.

    Open WebUI keeps no such chat, and gives it an id with a prefix (src/lib/components/chat/Chat.svelte in 0.6).
    """
    return any(one.startswith(_TEMPORARY) for one in (named, _header(request, OWN), _header(request, _CHAT)))


def message_key(request: Request) -> str:
    """The name that a client gives its message; "" for none."""
    return next((_fitting(given) for name in _KEYS if (given := _header(request, name))), "")


def answer_name(request: Request) -> str:
    """The name that a client gives the answer; "" for none."""
    return _fitting(_header(request, _ANSWER))


def header_text(text: str) -> str:
    """A text as the value of a header: what cannot stand in one is percent-encoded."""
    quoted = quote(text, safe=" !#$&'()*+,/:;=?@[]~", errors="backslashreplace")
    return quoted if quoted == quoted.strip() else quoted.replace(" ", "%20")


def _of_person(who: Principal, conversation: str) -> str:
    """A conversation as it is stored: that of one person where several share a key."""
    return f"{who.sender}/{conversation}" if who.people else conversation


def _fitting(name: str) -> str:
    """A name that can be stored."""
    return name if len(name) <= _CHARS_MAX and is_storable(name) else f"chat-{digest(name).hex()}"


def is_background(request: Request, settings: OpenAIConfig, turn: ChatTurn) -> bool:
    """Whether a call is about the talk and no part of it: a header says so, or its messages have a known shape."""
    return bool(turn.task or named_task(request, settings))


def named_task(request: Request, settings: OpenAIConfig) -> str:
    """What a header says that a background call is for; "" for any other call."""
    return next((given for name in settings.task_headers if (given := _header(request, name))), "")


def _header(request: Request, name: str) -> str:
    """A header as text, "" where it is absent or holds a placeholder."""
    value = request.headers.get(name, "").strip()
    with suppress(UnicodeDecodeError):
        value = value.encode("latin-1").decode()
    return "" if value.startswith(_UNFILLED) else value
