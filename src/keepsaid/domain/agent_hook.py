"""Hooks of coding agents: the fields of a call, and the lines of a transcript that are recorded (spec: doors, c)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from keepsaid.text.normal import cut, digest
from keepsaid.values import frozen

AGENTS = ("claude-code", "codex", "opencode")
"""The agents whose hooks are read."""

TEXT_CHARS_MAX = 50_000
"""Characters of one prompt or answer that are recorded."""

TOOL_BYTES_MAX = 2_000
"""Bytes of a tool's call that are recorded."""

_SESSION = re.compile(r"[\w.-]{1,128}")
_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_MADE = re.compile(r"<(?:command-|local-command-|bash-|task-|ide_)|\[Request interrupted|Caveat: The messages below")
"""How a text begins that the program of the agent wrote under the name of its user."""

_SKIPPED = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage")


class HookEvent(StrEnum):
    """The events that do something; any other is answered with nothing."""

    START = "SessionStart"
    PROMPT = "UserPromptSubmit"
    TOOL = "PostToolUse"
    COMPACT = "PreCompact"
    STOP = "Stop"
    END = "SessionEnd"


class HookLine(NamedTuple):
    """A prompt or an answer to record; `key` names it in its session."""

    text: str
    answer: bool
    key: str


@frozen
class HookCall:
    """One call of a hook. `event` is as the agent wrote it; a field that it did not send is "".

    `source` says why a session starts. `prompt_id` names the prompt that the event belongs to, `transcript` is the path
    of the session's file, `answer` the last thing that the agent said. `lines` are sent by agents without such a file.
    """

    agent: str
    event: str
    session: str
    folder: str = ""
    source: str = ""
    prompt: str = ""
    prompt_id: str = ""
    transcript: str = ""
    answer: str = ""
    tool: str = ""
    tool_id: str = ""
    output: str = ""
    lines: tuple[HookLine, ...] = ()

    def conversation(self, project: str) -> str:
        """The name of the session's conversation."""
        return f"{self.agent}:{project}#{self.session}"


def session_name(given: str) -> str:
    """Return the id of a session as part of a name; one of other characters is named by its hash."""
    return given if _SESSION.fullmatch(given) else digest(given).hex()


def public_text(text: str) -> str:
    """Return a text without what stands between `<private>` and `</private>`, or after it where nothing closes it."""
    return cut(_PRIVATE.sub("", text[: 4 * TEXT_CHARS_MAX]).strip(), TEXT_CHARS_MAX)


def prompt_key(prompt_id: str) -> str:
    """Return the key of a prompt that its agent names."""
    return f"prompt:{prompt_id}"


def repeated_key(text: str, number: int) -> str:
    """Return the key of a prompt without a name: its text, and how many times the session has had that text."""
    return f"said:{digest(text).hex()}:{number}"


def answer_key(text: str, number: int) -> str:
    """Return the key of an answer of a transcript: its text, and how many times the session has had that text.

    The call that ends a turn brings the same text, and may come before the transcript is written.
    """
    return f"answered:{digest(text).hex()}:{number}"


def tool_text(given: object, output: object) -> str:
    """Return the input and the output of a tool as one text."""
    return public_text("\n".join(_as_text(one) for one in (given, output) if one not in (None, "", {}, [])))


def cut_bytes(text: str, bytes_max: int) -> str:
    """Return as much of a text as has `bytes_max` bytes in UTF-8; no character is divided."""
    return text.encode("utf-8", "replace")[:bytes_max].decode("utf-8", "ignore")


@frozen
class TranscriptLine:
    """A line of a transcript that says something; `prompt_id` is "" where the agent names no prompts."""

    uuid: str
    text: str
    answer: bool
    prompt_id: str = ""


def transcript_line(raw: bytes, session: str) -> TranscriptLine | None:
    """Return a line of a session's transcript; None for other sessions, tools, thinking, subagents and broken lines."""
    try:
        line = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or line.get("type") not in ("user", "assistant"):
        return None
    if any(line.get(name) for name in _SKIPPED) or line.get("promptSource") == "system":
        return None
    uuid, message, answer = line.get("uuid"), line.get("message"), line["type"] == "assistant"
    if line.get("sessionId", session) != session or not isinstance(uuid, str) or not isinstance(message, dict):
        return None
    text = public_text(_REMINDER.sub("", _text_blocks(message.get("content"))))
    if not text or (not answer and _MADE.match(text)):
        return None
    prompt_id = line.get("promptId")
    return TranscriptLine(uuid, text, answer, prompt_id if isinstance(prompt_id, str) and not answer else "")


def _text_blocks(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [one.get("text") for one in blocks if isinstance(one, Mapping) and one.get("type") == "text"]
    return "\n\n".join(text for text in texts if isinstance(text, str) and not _MADE.match(text.lstrip()))


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
