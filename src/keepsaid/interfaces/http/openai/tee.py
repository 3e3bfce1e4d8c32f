"""A copy of an answer that passes through: the assistant's text, and whether all of it came."""

from __future__ import annotations

import json
from typing import Any

from keepsaid.domain.chat_call import text_of

_LINE_MAX = 1_000_000
_CHARS_MAX = 1_000_000
_DATA, _DONE = b"data:", b"[DONE]"


class StreamTee:
    """Reads the events of a stream beside their reader. What it cannot read is passed over."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._texts: list[str] = []
        self._chars = 0
        self._ended = self._failed = False

    def add(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n")
        self._rest = bytearray(rest)
        for line in lines:
            self._read(line)
        if len(self._rest) > _LINE_MAX:
            self._failed = True
            self._rest.clear()

    @property
    def answer(self) -> str | None:
        """The whole text of the assistant, "" for one without; None while it is not whole, or cannot be read."""
        if self._rest:
            self._read(bytes(self._rest))
            self._rest.clear()
        return "".join(self._texts) if self._ended and not self._failed else None

    def _read(self, line: bytes) -> None:
        if not line.startswith(_DATA):
            return
        data = line[len(_DATA) :].strip()
        if data == _DONE:
            self._ended = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            self._failed = True
            return
        if isinstance(event, dict):
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        if event.get("error"):
            self._failed = True
        choice = _first_choice(event)
        delta = choice.get("delta")
        text = delta.get("content") if isinstance(delta, dict) else None
        if isinstance(text, str):
            self._chars += len(text)
            self._failed = self._failed or self._chars > _CHARS_MAX
            if not self._failed:
                self._texts.append(text)
        if choice.get("finish_reason"):
            self._ended = True


def whole_answer(body: bytes) -> str | None:
    """The assistant's text in a whole answer, "" for one without; None where the body is not an answer."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    message = _first_choice(answer).get("message") if isinstance(answer, dict) else None
    if not isinstance(message, dict):
        return None
    text = text_of(message.get("content"))
    return text if len(text) <= _CHARS_MAX else None


def _first_choice(event: dict[str, Any]) -> dict[str, Any]:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return {}
