"""Which conversation a call belongs to, and whether it is a background call: by headers or by its messages (A2, A6)."""

from __future__ import annotations

from contextlib import suppress

from starlette.requests import Request

from keepsaid.config.openai import OpenAIConfig
from keepsaid.domain.chat_call import ChatTurn
from keepsaid.domain.principal import Principal
from keepsaid.interfaces.http.openai.problems import BadParameter
from keepsaid.text.normal import digest, is_storable

OWN = "x-keepsaid-conversation"
"""The header that names a conversation before any other; the same name as in the calls of agents."""

_CHARS_MAX = 200
_UNFILLED = "{{"
"""What begins a placeholder that a client did not fill in."""


def conversation_of(request: Request, settings: OpenAIConfig, who: Principal, turn: ChatTurn) -> str:
    """The name of the conversation of a call. Raises BadParameter where it must be named, and is not."""
    if own := _header(request, OWN):
        if len(own) > _CHARS_MAX or not is_storable(own):
            raise BadParameter(f"{OWN} must have 1 to {_CHARS_MAX} characters", OWN)
        return own
    for name in settings.conversation_headers:
        if found := _header(request, name):
            return found if len(found) <= _CHARS_MAX and is_storable(found) else f"chat-{digest(found).hex()}"
    if not who.direct and not who.everything:
        raise BadParameter(f"others are in the conversations of this key: name the conversation in {OWN}", OWN)
    return f"chat-{turn.opening}"


def is_background(request: Request, settings: OpenAIConfig, turn: ChatTurn) -> bool:
    """Whether a call is about the talk and no part of it: a header says so, or its messages have a known shape."""
    return bool(turn.task) or any(_header(request, name) for name in settings.task_headers)


def _header(request: Request, name: str) -> str:
    """A header as text, "" where it is absent or holds a placeholder."""
    value = request.headers.get(name, "").strip()
    with suppress(UnicodeDecodeError):
        value = value.encode("latin-1").decode()
    return "" if value.startswith(_UNFILLED) else value
