"""A chat completion that passes through: its model, what the user says last, and where that stands in the bytes.

Nothing here changes the messages. A turn is named by a chain of hashes over what user and assistant said before it, so
that the same call sent again has the same keys, and the history that comes with every call is stored once (A4, A9).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from keepsaid.domain.background_calls import task_of
from keepsaid.text.json_spans import ByteSpan, items, members, replaced
from keepsaid.values import frozen

_SAID = ("user", "assistant")
_SIZE = 16


@frozen
class ChatTurn:
    """The user's last message of a call.

    `place` is its offset in the body. `user_key` names it behind its history, `answer_key` the answer to the whole
    call, and `opening` the conversation by its first user message. `task` is what a background call is for, else "".
    """

    text: str
    place: int
    user_key: str
    answer_key: str
    opening: str
    task: str = ""


@frozen
class ChatCall:
    """The body of a call, and what is read of it; `turn` is None where no user message is in it."""

    raw: bytes
    model: ByteSpan
    turn: ChatTurn | None

    def forwarded(self, model: str, role: str, memory: str) -> bytes:
        """The body for the provider: another model, and `memory` as a message before the user's last one, if any.

        Every other byte stays as it came.
        """
        changes = [(self.model, json.dumps(model).encode())]
        if memory and self.turn is not None:
            message = json.dumps({"role": role, "content": memory}, ensure_ascii=False, separators=(",", ":"))
            changes.append((ByteSpan(self.turn.place, self.turn.place), f"{message},".encode("utf-8", "replace")))
        return replaced(self.raw, changes)


def read_call(raw: bytes, fields: Mapping[str, object]) -> ChatCall:
    """What a body says; `fields` is the body as it was read, with a member `model`. Messages may have any form."""
    places = members(raw)
    messages = fields.get("messages")
    turn = None
    if isinstance(messages, list) and all(isinstance(one, dict) for one in messages):
        turn = _turn(raw, items(raw, places["messages"].start), messages)
    return ChatCall(raw, places["model"], turn)


def text_of(content: object) -> str:
    """The text of a message's content: a text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def _turn(raw: bytes, places: Sequence[ByteSpan], messages: Sequence[Mapping[str, object]]) -> ChatTurn | None:
    users = [number for number, one in enumerate(messages) if one.get("role") == "user"]
    if not users:
        return None
    said = [(str(one.get("role")), text_of(one.get("content"))) for one in messages]
    chain, keys = blake2b(digest_size=_SIZE), list[str]()
    for number, ((role, text), message) in enumerate(zip(said, messages, strict=True)):
        if role in _SAID or number > users[-1]:
            _add(chain, role.encode(), text.strip().encode("utf-8", "surrogatepass"))
            if number > users[-1] or not _has_only_text(message.get("content")):
                _add(chain, memoryview(raw)[places[number].start : places[number].end])
        keys.append(chain.hexdigest())
    first, last = users[0], users[-1]
    return ChatTurn(said[last][1], places[last].start, keys[last], keys[-1], keys[first], task_of(said))


def _has_only_text(content: object) -> bool:
    if not isinstance(content, list):
        return True
    return all(isinstance(part, dict) and part.get("type") == "text" for part in content)


def _add(chain: blake2b, *parts: bytes | memoryview) -> None:
    """Add parts that cannot run into one another."""
    for part in parts:
        chain.update(b"%d:" % len(part))
        chain.update(part)
