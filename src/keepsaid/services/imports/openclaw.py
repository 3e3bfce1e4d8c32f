"""Reads a home or a workspace of OpenClaw: its notes in Markdown, and the transcripts of its sessions.

A workspace has `MEMORY.md`, `USER.md` and daily notes as `memory/YYYY-MM-DD.md`. A home has workspaces, and
`agents/ID/sessions/` with one transcript a session: the first line names the session, and each line of the type
`message` has a `message` with its `role` and `content`. `sessions.json` there has the sessions by their keys, which
say whether a session belongs to a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from keepsaid.domain.memory import Kind
from keepsaid.services.imports import notes
from keepsaid.services.imports.drafts import USER, Draft, Finding, LeftOut, dict_in, name_in, text_in, time_in
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.services.imports.json_items import objects_in

_NOTES = frozenset({"MEMORY.md", "USER.md", "memory.md"})
_OWN = frozenset({"AGENTS.md", "SOUL.md", "IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"})
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[-_].{0,200})?")
_SKIPPED = frozenset({"node_modules", ".git", "skills", "credentials"})
_SPEAKER = "OpenClaw"


def _is_note(name: PurePosixPath) -> bool:
    if name.suffix != ".md" or not _SKIPPED.isdisjoint(name.parts):
        return False
    return name.name in _NOTES or "memory" in name.parts[:-1]


def _is_session(name: PurePosixPath) -> bool:
    return name.suffix == ".jsonl" and name.parent.name == "sessions" and "agents" in name.parts


class OpenClawReader:
    """Reads a home or a workspace of OpenClaw."""

    product = "openclaw"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether there are sessions of agents, or notes beside a file that every workspace has."""
        names = [PurePosixPath(name) for name in files.names]
        has_own = any(name.name in _OWN or name.name == "openclaw.json" for name in names)
        return any(map(_is_session, names)) or (has_own and any(map(_is_note, names)))

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """Its notes, then its sessions. Raises InputError."""
        written, sessions = files.named(_is_note), files.named(_is_session)
        if not written and not sessions:
            raise refused(f"{files.path} holds neither notes nor sessions of OpenClaw")
        for name in written:
            yield from _note(files, name, now)
        groups = _groups(files)
        for name in sessions:
            yield from _session(files, name, now, groups)


def _note(files: ImportFiles, name: str, now: int) -> Iterator[Finding]:
    """The statements of a note; a daily note holds what was observed on its day."""
    day = _DAY.fullmatch(PurePosixPath(name).stem)
    at = time_in(f"{day[1]}T12:00:00Z", now) if day else files.changed_at(name)
    yield from notes.facts(name, files.text(name), name, at, Kind.OBSERVATION if day else None)


def _groups(files: ImportFiles) -> frozenset[str]:
    """The ids of sessions that belong to groups and channels, where others speak than the user."""
    found: set[str] = set()
    for name in files.named(lambda one: one.name == "sessions.json" and one.parent.name == "sessions"):
        for key, entry in dict_in(files.document(name)).items():
            if ":group:" in key or ":channel:" in key:
                found.add(str(dict_in(entry).get("sessionId")))
    return frozenset(found)


def _session(files: ImportFiles, name: str, now: int, groups: frozenset[str]) -> Iterator[Finding]:
    path = PurePosixPath(name)
    session, agent, at = path.stem, path.parent.parent.name, None
    for number, line in objects_in(files, name):
        if line is None:
            yield LeftOut("it is not a JSON object")
            continue
        at = time_in(line.get("timestamp"), now) or at
        if line.get("type") == "session":
            session = name_in(line, "id") or session
        elif line.get("type") == "message":
            place = f"{agent}/{session}/{name_in(line, 'id') or number}"
            yield _message(
                dict_in(line.get("message")), Draft(place, "", name, said_at=at, conversation=session), groups
            )


def _message(message: dict[str, Any], draft: Draft, groups: frozenset[str]) -> Finding:
    """A message at the place of a draft, or why it is left out."""
    role, text = message.get("role"), text_in(message.get("content"))
    if role not in ("user", "assistant"):
        return LeftOut("it is the output of a tool" if role == "toolResult" else "it is a system message")
    if not text.strip():
        return LeftOut("it holds no text")
    is_group = draft.conversation in groups
    return Draft(
        draft.ref,
        text,
        draft.file,
        said_at=draft.said_at,
        conversation=draft.conversation,
        speaker=_SPEAKER if role == "assistant" else "group" if is_group else USER,
        outside=role == "assistant" or is_group,
    )
