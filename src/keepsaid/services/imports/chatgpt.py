"""Reads the export of ChatGPT: the messages of each conversation, along the branch that was shown last.

`conversations.json` (in newer exports `conversations-000.json` and so on) is an array of conversations. The messages
of one are a tree: `mapping` has its nodes by id, each with `message`, `parent` and `children`, and `current_node` is
the last message shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from keepsaid.services.imports.drafts import USER, Draft, Finding, LeftOut, dict_in, list_in, name_in, time_in
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.services.imports.json_items import items_in

_FILE = re.compile(r"conversations(-\d{1,6})?\.json")
_LOOKS = re.compile(rb'"mapping"\s{0,9}:\s{0,9}\{')
_SPEAKER = "ChatGPT"
_ROLES = {"tool": "it is the output of a tool", "system": "it is a system message"}


def is_conversations(name: PurePosixPath) -> bool:
    """Whether a file is named as that of the conversations in an export."""
    return _FILE.fullmatch(name.name) is not None


def conversation_files(files: ImportFiles) -> list[str]:
    """The files with conversations: those named so, or the only file there is."""
    return files.named(is_conversations) or [name for name in files.names if len(files.names) == 1]


class ChatGptReader:
    """Reads an export of ChatGPT."""

    product = "chatgpt"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether a file of conversations has a `mapping`."""
        return any(_LOOKS.search(files.head(name)) for name in conversation_files(files))

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """All messages, conversation by conversation. Raises InputError."""
        if not (names := conversation_files(files)):
            raise refused(f"{files.path} holds no conversations.json")
        for name in names:
            for item in items_in(files, name):
                conversation = dict_in(item)
                if not isinstance(conversation.get("mapping"), dict):
                    yield LeftOut("it is not a conversation: it has no mapping")
                else:
                    yield from _Conversation(conversation, name, now).findings()


class _Conversation:
    """One conversation, with the nodes that were shown last."""

    def __init__(self, fields: dict[str, Any], file: str, now: int) -> None:
        self._id = name_in(fields, "conversation_id", "id")
        self._nodes: dict[str, dict[str, Any]] = {name: dict_in(one) for name, one in fields["mapping"].items()}
        self._last = fields.get("current_node")
        self._title = str(fields.get("title") or "")[:200]
        self._file = file
        self._now = now
        self._at = time_in(fields.get("create_time"), now)

    def findings(self) -> Iterator[Finding]:
        """Its messages in order, then those of other branches, which are left out."""
        if not self._id:
            yield LeftOut("it is a conversation without an id")
            return
        shown = self._shown()
        if shown is None:
            yield LeftOut("its messages form a circle, or lead nowhere")
            return
        for node in shown:
            yield from self._finding(node)
        rest = self._nodes.keys() - set(shown)
        for node in self._nodes:
            if node in rest and _says(dict_in(self._nodes[node].get("message"))):
                yield LeftOut("it is on a branch that was given up")

    def _shown(self) -> list[str] | None:
        """The nodes from the first to the current one; None where there is no such way."""
        last = self._last if isinstance(self._last, str) and self._last in self._nodes else self._newest_leaf()
        way: dict[str, None] = {}
        while isinstance(last, str) and last in self._nodes:
            if last in way:
                return None
            way[last] = None
            last = self._nodes[last].get("parent")
        return list(reversed(way)) if way or not self._nodes else None

    def _newest_leaf(self) -> str | None:
        """The node without answers that was written last, for an export that does not say what was shown."""
        leaves = [name for name, node in self._nodes.items() if not list_in(node.get("children"))]
        return max(leaves, key=self._time_of, default=None)

    def _time_of(self, node: str) -> int:
        return time_in(dict_in(self._nodes[node].get("message")).get("create_time"), self._now) or 0

    def _finding(self, node: str) -> Iterator[Finding]:
        message = dict_in(self._nodes[node].get("message"))
        if not _says(message) and not self._has_other(message):
            return
        role = dict_in(message.get("author")).get("role")
        if why := _left_out(message, role):
            yield LeftOut(why)
            return
        self._at = time_in(message.get("create_time"), self._now) or self._at
        model = dict_in(message.get("metadata")).get("model_slug")
        yield Draft(
            f"{self._id}/{name_in(message, 'id') or node[:200]}",
            _text(message),
            self._file,
            said_at=self._at,
            conversation=self._id,
            speaker=USER if role == "user" else _SPEAKER,
            outside=role != "user",
            about={"title": self._title, **({"model": model} if isinstance(model, str) else {})},
        )

    def _has_other(self, message: dict[str, Any]) -> bool:
        """Whether it is a message of the user or the assistant that holds something other than text."""
        content = dict_in(message.get("content"))
        is_other = content.get("content_type") not in (None, "text")
        has_files = any(isinstance(one, dict) for one in list_in(content.get("parts")))
        return dict_in(message.get("author")).get("role") in ("user", "assistant") and (is_other or has_files)


def _left_out(message: dict[str, Any], role: object) -> str:
    """Why a message is not imported; "" if it is."""
    kind = str(dict_in(message.get("content")).get("content_type", "text"))[:40]
    if role not in ("user", "assistant"):
        return _ROLES.get(str(role), "it was said by neither the user nor the assistant")
    if dict_in(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        return "it is hidden in its conversation"
    if message.get("recipient") not in (None, "all"):
        return "it is a call of a tool"
    if kind not in ("text", "multimodal_text"):
        return f"its content is {kind!r}, not text"
    return "" if _says(message) else "it holds no text, but a file or an image"


def _text(message: dict[str, Any]) -> str:
    """The texts of a message, and the words of spoken parts; images and files are left out."""
    parts = list_in(dict_in(message.get("content")).get("parts"))
    texts = [one if isinstance(one, str) else _transcribed(dict_in(one)) for one in parts]
    return "\n".join(one for one in texts if one.strip())


def _transcribed(part: dict[str, Any]) -> str:
    text = part.get("text")
    return text if part.get("content_type") == "audio_transcription" and isinstance(text, str) else ""


def _says(message: dict[str, Any]) -> bool:
    return bool(_text(message).strip())
