"""Addressing: which messages of a group speak to the agent; the others are kept, and nobody answers them."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from keepsaid.domain.command import command_in
from keepsaid.domain.memory import person_of
from keepsaid.domain.message import EDITED, SYSTEM, StoredMessage
from keepsaid.domain.route import Action, Addressing, Edits, Fields, Routes, Rule, Verdict, judge
from keepsaid.values import frozen


@frozen
class Dialogue:
    """What a lane says of who speaks with the agent.

    `answered` are the provider's ids of the agent's own replies that waiting messages answer; `asked` are the people
    whose answer the agent waits for. `addressed` are the ids of messages that are to the agent by the word of their
    medium. `settled` are the provider's ids of messages that were answered or dropped before somebody edited them.
    """

    answered: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    addressed: frozenset[int] = frozenset()
    settled: frozenset[str] = frozenset()


NO_DIALOGUE = Dialogue()


def decide(
    routes: Routes, message: StoredMessage, payload: Fields, dialogue: Dialogue = NO_DIALOGUE
) -> tuple[Verdict, Rule | None]:
    """The verdict on a message by the rules; what they leave to the default is answered only if it is addressed.

    An edit of what was settled before is answered only where the channel's `edits` say so (spec: channels, C15).
    """
    verdict, rule = judge(routes, message, payload)
    if rule is not None or verdict.action is not Action.FORWARD:
        return verdict, rule
    channel = message.inbound.origin.channel
    is_late = message.inbound.content.event == EDITED and message.inbound.marks.provider_id in dialogue.settled
    if is_late and (heed := routes.edits.get(channel, Edits.ANSWER)) is not Edits.ANSWER:
        reason = f"it edits what was settled before; channels.{channel}.edits is {heed}"
        return Verdict(Action.LISTEN if heed is Edits.NOTE else Action.DROP, verdict.rule, routes.version, reason), None
    if is_addressed(routes.addressing, message, dialogue):
        return verdict, rule
    reason = f"nobody addressed the agent; channels.{channel}.answer is addressed"
    return Verdict(Action.LISTEN, verdict.rule, routes.version, reason), None


def is_addressed(addressing: Addressing, message: StoredMessage, dialogue: Dialogue = NO_DIALOGUE) -> bool:
    """Whether a message is for the agent.

    It is where everything is answered, in a direct chat, as an event or a command; if its medium says so; and if it
    names the agent, answers one of its replies, or comes from a person whom the agent asked.
    """
    origin = message.inbound.origin
    is_talk = not (origin.direct or origin.sender == SYSTEM or message.damaged)
    is_talk = is_talk and message.inbound.content.event in ("", EDITED)
    if origin.channel not in addressing.channels or not is_talk or command_in(message) is not None:
        return True
    if message.id in dialogue.addressed or message.inbound.marks.reply_to in dialogue.answered:
        return True
    if person_of(origin) in dialogue.asked:
        return True
    return names_any(message.text, addressing.names)


def names_any(text: str, names: Collection[str]) -> bool:
    """Whether one of the names stands in a text as a word of its own, with or without @, in any case."""
    pattern = _pattern(tuple(sorted(names)[:_NAMES_MAX]))
    return pattern is not None and pattern.search(text[:_CHARS_MAX]) is not None


_NAMES_MAX, _NAME_CHARS_MAX, _CHARS_MAX = 32, 64, 20_000
"""The names of an agent, and the characters of each and of a message, that are looked at."""


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    words = "|".join(re.escape(name[:_NAME_CHARS_MAX]) for name in names[:_NAMES_MAX] if name.strip())
    return re.compile(rf"(?<![\w@])@?(?:{words})(?!\w)", re.IGNORECASE) if words else None
