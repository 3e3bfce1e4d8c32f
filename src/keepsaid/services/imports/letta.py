"""Reads an agent file of Letta (`.af`), or a list of archival passages as its API returns it, as JSON.

An agent file has `agents`, each with `messages`, and `blocks` with a `label` and a `value`; one of the first release
is a single agent with `core_memory` instead. A passage has `id`, `text`, `tags` and `created_at`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from keepsaid.services.imports import notes
from keepsaid.services.imports.drafts import (
    USER,
    Draft,
    Finding,
    LeftOut,
    dict_in,
    kind_of_words,
    list_in,
    name_in,
    text_in,
    time_in,
)
from keepsaid.services.imports.files import ImportFiles, refused

_PASSAGES = re.compile(rb'"(?:archive_id|organization_id)"\s{0,9}:|"id"\s{0,9}:\s{0,9}"passage-')
_AGENTS = re.compile(rb'"(?:agents|core_memory|in_context_message_ids|in_context_message_indices)"\s{0,9}:\s{0,9}\[')
_LOOKED_AT_MAX = 20
"""Files that are looked at to recognise the format."""

_PERSONA = "persona"
_EVENTS = frozenset({"heartbeat", "login", "system_alert", "reminder"})
"""What the program itself sends to the agent as if it were a message of the user."""


class LettaReader:
    """Reads an agent file or a list of passages of Letta."""

    product = "letta"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether a JSON file has the fields of agents or of passages."""
        names = _documents(files)[:_LOOKED_AT_MAX]
        return any(_PASSAGES.search(head) or _AGENTS.search(head) for head in map(files.head, names))

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """The blocks of the agents, their passages and their messages. Raises InputError."""
        if not (names := _documents(files)):
            raise refused(f"{files.path} holds no agent file (.af), and no list of passages (.json)")
        for name in names:
            document = files.document(name)
            fields = dict_in(document)
            if isinstance(document, list) or isinstance(fields.get("passages"), list):
                passages = document if isinstance(document, list) else fields["passages"]
                yield from (_passage(dict_in(one), name, now) for one in passages)
            agents = fields.get("agents", [fields] if "core_memory" in fields else [])
            for block in [*list_in(fields.get("blocks")), *list_in(fields.get("core_memory"))]:
                yield from _block(dict_in(block), files, name)
            for agent in list_in(agents):
                yield from _agent(dict_in(agent), name, now)
            if not isinstance(document, list) and not {"passages", "agents", "core_memory"} & fields.keys():
                raise refused(f"{files.where(name)} is neither an agent file nor a list of passages")


def _documents(files: ImportFiles) -> list[str]:
    return files.named(lambda name: name.suffix in (".af", ".json"))


def _passage(fields: dict[str, Any], file: str, now: int) -> Finding:
    name, text = name_in(fields, "id"), fields.get("text")
    if not name or not isinstance(text, str):
        return LeftOut("it is not a passage: it has no id, or no text")
    if fields.get("is_deleted"):
        return LeftOut("it was deleted in its program")
    tags = [one for one in list_in(fields.get("tags")) if isinstance(one, str)][:50]
    about = {"tags": tags} if tags else {}
    at = time_in(fields.get("created_at"), now)
    return Draft(f"passage/{name}", text, file, kind=kind_of_words(*tags), said_at=at, about=about)


def _block(fields: dict[str, Any], files: ImportFiles, file: str) -> Iterator[Finding]:
    """The statements of a block; a description of the agent says nothing of its user."""
    label, value = name_in(fields, "label"), fields.get("value")
    if not isinstance(value, str) or not label:
        yield LeftOut("it is not a block: it has no label, or no value")
    elif label.startswith(_PERSONA) or fields.get("read_only"):
        yield LeftOut("it is a block that describes the agent")
    else:
        yield from notes.facts(f"block/{name_in(fields, 'id') or label}", value, file, files.changed_at(file))


def _agent(fields: dict[str, Any], file: str, now: int) -> Iterator[Finding]:
    agent = name_in(fields, "id", "name") or "agent"
    speaker, at = name_in(fields, "name") or "Letta", None
    for number, one in enumerate(list_in(fields.get("messages"))):
        message = dict_in(one)
        at = time_in(message.get("created_at"), now) or at
        role, text = message.get("role"), _words(message)
        if role not in ("user", "assistant"):
            yield LeftOut("it is the output of a tool" if role == "tool" else "it is a system message")
        elif not text.strip():
            yield LeftOut("it holds no text")
        else:
            yield Draft(
                f"{agent}/{name_in(message, 'id') or number}",
                text,
                file,
                said_at=at,
                conversation=agent,
                speaker=speaker if role == "assistant" else USER,
                outside=role == "assistant",
            )


def _words(message: dict[str, Any]) -> str:
    """The words of a message: those sent by a tool where there are some, and the words inside of an envelope."""
    calls = (dict_in(dict_in(one).get("function")) for one in list_in(message.get("tool_calls")))
    sent = [_object(one.get("arguments")).get("message") for one in calls if one.get("name") == "send_message"]
    if message.get("role") == "assistant" and sent:
        return "\n".join(one for one in sent if isinstance(one, str))
    text = text_in(message.get("content")) or text_in(message.get("text"))
    envelope = _object(text) if text.startswith("{") else {}
    if envelope.get("type") in _EVENTS:
        return ""
    inside = envelope.get("message")
    return inside if envelope.get("type") == "user_message" and isinstance(inside, str) else text


def _object(text: object) -> dict[str, Any]:
    try:
        return dict_in(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
