"""Exports and homes of other programs for tests, written by hand after their formats, and what is imported of them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keepsaid.app.stores import session_reader
from keepsaid.domain.message import Trust
from keepsaid.services.imports.drafts import Draft, Finding, LeftOut, Reader
from keepsaid.services.imports.files import open_files

NOW = 1_800_000_000_000
"""The time of an import: January 2027."""

KNOWN: dict[str, Any] = {"trust": Trust.KNOWN}


def written(path: Path, content: object) -> Path:
    """A file with this text, these bytes, or this value as JSON; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def folder(path: Path, files: Mapping[str, object]) -> Path:
    """A folder with these files."""
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        written(path / name, content)
    return path


def zipped(path: Path, files: Mapping[str, object]) -> Path:
    """A zip archive with these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, str | bytes) else json.dumps(content))
    return path


def files_in(path: Path) -> list[str]:
    """The names of what is in a folder."""
    return sorted(one.name for one in path.iterdir())


def found(reader: Reader, path: Path) -> list[Finding]:
    """All that a reader finds in a path."""
    return list(reader.read(open_files(path, session_reader()), NOW))


def drafts(findings: Sequence[Finding]) -> list[Draft]:
    """What can be imported of it."""
    return [one for one in findings if isinstance(one, Draft)]


def left_out(findings: Sequence[Finding]) -> list[str]:
    """Why the rest is left out."""
    return [one.why for one in findings if isinstance(one, LeftOut)]


def said(name: str, role: str, text: str, **fields: object) -> dict[str, Any]:
    """A message of ChatGPT."""
    content = {"content_type": "text", "parts": [text]}
    return {"id": name, "author": {"role": role}, "create_time": 1_700_000_000.5, "content": content, **fields}


def node(name: str, parent: str | None, message: dict[str, Any] | None, *children: str) -> dict[str, Any]:
    """A node of a conversation of ChatGPT."""
    return {"id": name, "message": message, "parent": parent, "children": [*children]}


def chatgpt(name: str, nodes: Sequence[dict[str, Any]], current: str | None, **fields: object) -> dict[str, Any]:
    """A conversation of ChatGPT."""
    about = {"id": name, "conversation_id": name, "title": "A boat", "create_time": 1_600_000_000.0}
    return {**about, "current_node": current, "mapping": {one["id"]: one for one in nodes}, **fields}


BOAT = chatgpt(
    "c1",
    [
        node("root", None, None, "s"),
        node("s", "root", said("s", "system", ""), "q"),
        node("q", "s", said("q", "user", "My rowing boat is in the shed at the lake."), "a", "b"),
        node("a", "q", said("a", "assistant", "Then it is dry."), "t"),
        node("b", "q", said("b", "assistant", "An earlier answer.")),
        node("t", "a", said("t", "tool", "found 3 pages"), "e"),
        node("e", "t", said("e", "user", "Remind me to paint it.", create_time=1_700_000_060)),
    ],
    "e",
)
"""A conversation with a branch that was given up and the output of a tool."""


def claude_message(name: str, sender: str, text: str, **fields: object) -> dict[str, Any]:
    """A message of Claude."""
    return {"uuid": name, "sender": sender, "text": text, "created_at": "2024-05-01T10:00:00.250000Z", **fields}


def claude(name: str, *messages: dict[str, Any]) -> dict[str, Any]:
    """A conversation of Claude."""
    about = {"uuid": name, "name": "A garden", "created_at": "2024-05-01T09:59:00Z"}
    return {**about, "chat_messages": [*messages]}
