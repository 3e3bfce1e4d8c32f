"""Reads a home of Hermes Agent: its memory files, and its sessions, from `state.db` or an export.

`memories/MEMORY.md` and `memories/USER.md` hold entries that a line with `§` divides. `hermes sessions export` writes a
session as one line of JSON with its `messages`, of which each has a `role`, a `content` and a `timestamp` in seconds;
the database has the same fields as tables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from keepsaid.services.imports import notes
from keepsaid.services.imports.drafts import USER, Draft, Finding, LeftOut, dict_in, list_in, name_in, text_in, time_in
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.services.imports.json_items import objects_in

_FILES = ("MEMORY.md", "USER.md")
_MARK = re.compile(r"(?m)^[ \t]{0,9}§[ \t]{0,9}$")
_LOOKS = re.compile(rb'"messages"\s{0,9}:\s{0,9}\[')
_ENCODED = ("\0json:", "\1json:")
"""The start of a content that is a list of parts as JSON."""

_SPEAKER = "Hermes"
_LOCAL = frozenset({"", "cli", "tui", "desktop", "local"})
"""Sources of sessions in which the user of the home speaks; in others it is whom `user_id` names."""


_STATE = "it is a database in an archive: unpack the archive, and import the folder"


def _is_memory(name: PurePosixPath) -> bool:
    return name.name in _FILES and name.parent.name == "memories"


def _is_state(name: PurePosixPath) -> bool:
    return name.name == "state.db"


def _is_export(name: PurePosixPath) -> bool:
    return name.suffix == ".jsonl" and (name.parent.name == "sessions" or len(name.parts) == 1)


class HermesReader:
    """Reads a home of Hermes Agent, or an export of its sessions."""

    product = "hermes"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether there are its memory files, its database, or lines that hold messages."""
        if files.named(_is_memory) or files.named(_is_state):
            return True
        is_one = len(files.names) == 1 and files.names[0].endswith(".jsonl")
        return is_one and _LOOKS.search(files.head(files.names[0])) is not None

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """The entries of its memory, then its sessions. Raises InputError."""
        memories, states, exports = (files.named(one) for one in (_is_memory, _is_state, _is_export))
        if not memories and not states and not exports:
            raise refused(f"{files.path} holds neither memories nor sessions of Hermes")
        for name in memories:
            for entry in filter(None, map(str.strip, _MARK.split(files.text(name)))):
                yield notes.fact(name, entry, name, files.changed_at(name))
        for name in states:
            yield from _state(files, name, now)
        for name in exports:
            for _, session in objects_in(files, name):
                if session is None or not isinstance(session.get("messages"), list):
                    yield LeftOut("it is not a session: it has no messages")
                else:
                    yield from _messages(session, list_in(session["messages"]), name, now)


def _state(files: ImportFiles, name: str, now: int) -> Iterator[Finding]:
    """The messages in a database, if it is on disk."""
    path = files.place_of(name)
    if path is None or files.sessions is None:
        yield LeftOut(_STATE)
        return
    for session, messages in files.sessions(path):
        yield from _messages(session, messages, name, now)


def _messages(session: dict[str, Any], messages: list[Any], file: str, now: int) -> Iterator[Finding]:
    """The messages of a session, oldest first."""
    if not (name := name_in(session, "id", "session_id")):
        yield LeftOut("it is a session without an id")
        return
    source, at = str(session.get("source") or ""), time_in(session.get("started_at"), now)
    who = None if source in _LOCAL else f"{source}:{session.get('user_id') or ''}"[:200]
    about = {"title": str(session.get("title") or "")[:200], "source": source[:80]}
    for number, one in enumerate(messages):
        message = dict_in(one)
        at = time_in(message.get("timestamp"), now) or at
        role, text = message.get("role"), _content(message.get("content"))
        if role not in ("user", "assistant"):
            yield LeftOut("it is the output of a tool" if role == "tool" else "it is a system message")
        elif message.get("active") == 0:
            yield LeftOut("it was taken back in its session")
        elif not text.strip():
            yield LeftOut("it holds no text")
        else:
            yield Draft(
                f"{name}/{name_in(message, 'id') or number}",
                text,
                file,
                said_at=at,
                who=who,
                conversation=name,
                speaker=_SPEAKER if role == "assistant" else USER,
                outside=role == "assistant",
                about=about,
            )


def _content(content: object) -> str:
    """The text of a content, which may be a list of parts, or such a list as JSON."""
    if isinstance(content, str) and content.startswith(_ENCODED):
        try:
            return text_in(json.loads(content[6:]))
        except (ValueError, RecursionError):
            return ""
    return text_in(content)
