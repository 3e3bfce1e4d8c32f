"""Reads the export of Claude: the messages of `conversations.json`, and what `memories.json` says of the user.

A conversation has `uuid`, `name` and `chat_messages`, each with `uuid`, `sender` (human or assistant), `created_at`,
and its text as `content` blocks or as `text`. `memories.json`, or each file in `memories/`, has a text as
`conversations_memory` and one for each project in `project_memories`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from keepsaid.services.imports import notes
from keepsaid.services.imports.chatgpt import conversation_files
from keepsaid.services.imports.drafts import USER, Draft, Finding, LeftOut, dict_in, list_in, name_in, text_in, time_in
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.services.imports.json_items import items_in

_LOOKS = re.compile(rb'"chat_messages"\s{0,9}:\s{0,9}\[')
_SPEAKER = "Claude"
_SENDERS = ("human", "assistant")


def _is_memories(name: PurePosixPath) -> bool:
    return name.name == "memories.json" or (name.suffix == ".json" and name.parent.name == "memories")


def _is_projects(name: PurePosixPath) -> bool:
    return name.name == "projects.json" or (name.suffix == ".json" and name.parent.name == "projects")


class ClaudeReader:
    """Reads an export of Claude."""

    product = "claude"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether a file of conversations has `chat_messages`."""
        return any(_LOOKS.search(files.head(name)) for name in conversation_files(files))

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """What it remembers of its user, then all messages. Raises InputError."""
        if not (names := conversation_files(files)):
            raise refused(f"{files.path} holds no conversations.json")
        for name in files.named(_is_memories):
            yield from _memories(files, name)
        for name in files.named(_is_projects):
            document = files.document(name)
            for project in document if isinstance(document, list) else [document]:
                documents = list_in(dict_in(project).get("docs"))
                yield from (LeftOut("it is a document of a project") for _ in documents)
        for name in names:
            for item in items_in(files, name):
                yield from _conversation(dict_in(item), name, now)


def _memories(files: ImportFiles, name: str) -> Iterator[Finding]:
    document = files.document(name)
    for one in document if isinstance(document, list) else [document]:
        texts = {"conversations_memory": dict_in(one).get("conversations_memory")}
        projects = dict_in(dict_in(one).get("project_memories"))
        texts |= {f"project_memories/{project[:100]}": text for project, text in projects.items()}
        for part, text in texts.items():
            if isinstance(text, str):
                yield from notes.facts(f"memories/{part}", text, name, files.changed_at(name))


def _conversation(fields: dict[str, Any], file: str, now: int) -> Iterator[Finding]:
    conversation, messages = name_in(fields, "uuid", "id"), fields.get("chat_messages")
    if not conversation or not isinstance(messages, list):
        yield LeftOut("it is not a conversation: it has no uuid, or no chat_messages")
        return
    title, at = str(fields.get("name") or "")[:200], time_in(fields.get("created_at"), now)
    for one in messages:
        message = dict_in(one)
        at = time_in(message.get("created_at"), now) or at
        sender, name = message.get("sender"), name_in(message, "uuid", "id")
        yield from (LeftOut("it is an attached file") for _ in list_in(message.get("attachments")))
        text = text_in(message.get("content")) or text_in(message.get("text"))
        if sender not in _SENDERS or not name:
            yield LeftOut("it is not a message: it has no uuid, or was sent by neither the human nor the assistant")
        elif not text.strip():
            yield LeftOut("it holds no text")
        else:
            yield Draft(
                f"{conversation}/{name}",
                text,
                file,
                said_at=at,
                conversation=conversation,
                speaker=USER if sender == "human" else _SPEAKER,
                outside=sender != "human",
                about={"title": title},
            )
