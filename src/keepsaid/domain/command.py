"""Commands: what a person may tell the program itself in any chat, in a message that begins with a slash.

Only what is exactly a known command is one: `/usr/bin is full` and `/reset the router` are talk. A command with a
single word behind it that it does not take, as `/undo foo`, is a mistake, and answered as one; so is every `/forget`
that is none, but a question.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from keepsaid.domain.effects import Effect
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

COMMANDS = {
    "context": "show what the last turn's context held, and what was cut from it",
    "reset": "start over: the model no longer sees what was said so far; it stays stored and remembered",
    "compact": "summarise the conversation so far",
    "remember": "store a memory: /remember and a text; /undo takes it back",
    "undo": "take back the newest memory that /remember or the agent stored from this conversation",
    "incognito": "what is said here from now on is not remembered; /incognito off ends that",
    "pause": "messages of this conversation wait without an answer until /resume; commands are still read",
    "resume": "answer the messages that waited since /pause, in order",
    "wrong": "a recalled memory was wrong: leave it out here; /wrong undo brings it back",
    "forget": "delete for good: /forget that, or /forget and the id of a memory or message; then /forget yes",
    "personality": "how the agent speaks: show, set TEXT or reset, with --person or --global",
    "join": "link another direct chat of yours with this one: say /join here, then /join and the code there",
    "widen": "make what you said visible to more people: /widen mem_ID conversation, person or global, and a reason",
    "why": "say what the last answer here rests on: the rule, the memories and the tools",
    "status": "show what waits in this home, and what needs attention",
    "inbox": "list the newest messages that wait in this home",
    "tasks": "list background tasks, and those that wait for your review",
    "schedules": "list schedules, and those that were disabled",
    "approve": "approve a task that waits for review: /approve and its id",
    "reject": "reject a task that waits for review: /reject and its id",
    "start": "how to begin",
    "help": "this list",
}
"""The commands and what they do."""

_WRITTEN = lazy(r"/([A-Za-z]{2,20})(?:@[\w.]{1,64})?(?:\s+(.*))?", re.DOTALL)
_ALIKE = 0.7
_SENTENCE_ENDS = ("?", "!", ".", ",")
"""A word with such a mark is the end of a sentence, and no argument."""

_ARGUMENTS = {
    "approve": lazy(r"tsk_[0-9a-z]{13}"),
    "reject": lazy(r"tsk_[0-9a-z]{13}"),
    "forget": lazy(r"that|yes|(?:mem|msg)_[0-9a-z]{13}(?:\s+yes)?"),
    "incognito": lazy(r"on|off", re.IGNORECASE),
    "remember": lazy(r".+", re.DOTALL),
    "wrong": lazy(r"undo|(?:undo\s+)?mem_[0-9a-z]+|\d{1,3}"),
    "join": lazy(r"undo|[A-Za-z2-9]{8}"),
    "personality": lazy(r"(show|set|reset)(\s.*)?", re.DOTALL),
    "widen": lazy(r"mem_[0-9a-z]+\s+(conversation|person|global)(\s.{1,1000})?", re.DOTALL),
}
"""Commands that take arguments, and their form. With any other arguments a message is talk, and the model reads it."""


_NEVER_TALK = ("forget",)
"""Commands after which nothing is talk: who wants something deleted does not want that sentence stored."""


@frozen
class Command:
    """A command as it was given; `known` is false for one that is only alike to a known one, `name`.

    One with a word behind it that it does not take is `misused`.
    """

    name: str
    arguments: str = ""
    known: bool = True
    misused: bool = False


@frozen
class ExecutedCommand:
    """A command that was executed or refused: its message, name, outcome, and the length of its arguments."""

    message_id: int
    name: str
    outcome: str
    size: int


def read_command(text: str) -> Command | None:
    """The command that a text is, or None for talk.

    A word that is one letter or two away from a command's name is one that is not known, if it stands alone.
    """
    if (found := _WRITTEN.fullmatch(text.strip())) is None:
        return None
    name, arguments = found[1].lower(), (found[2] or "").strip()
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, 1, _ALIKE) if not arguments else []
        return Command(near[0], known=False) if near else None
    if not arguments or (name in _ARGUMENTS and _ARGUMENTS[name].fullmatch(arguments) is not None):
        return Command(name, arguments)
    is_meant = name in _NEVER_TALK and not arguments.endswith("?")
    return Command(name, arguments, misused=True) if is_meant or not is_talk(arguments) else None


def is_talk(arguments: str) -> bool:
    """Whether what stands after a name that does not take it reads as a sentence to the agent, not as a mistake."""
    return len(arguments.split()) > 1 or any(one in arguments for one in _SENTENCE_ENDS)


def command_in(message: StoredMessage) -> Command | None:
    """The command that a message is: only a person's words can be one, not an event of a webhook."""
    return None if message.damaged or message.inbound.content.event else read_command(message.text)


def may_change(message: StoredMessage) -> bool:
    """Whether a sender may change the lane for all who are in it: in a group no stranger may."""
    origin = message.inbound.origin
    return origin.direct or origin.trust is not Trust.EXTERNAL


DONE, REFUSED, ASKED = "done", "refused", "asked"
"""Outcomes: carried out, not allowed or not possible, or answered with a question."""


@frozen
class CommandResult:
    """The words of the answer, and what the turn's commit does."""

    text: str
    outcome: str = DONE
    effects: tuple[Effect, ...] = ()
    begins_anew: bool = False
