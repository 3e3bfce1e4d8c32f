"""Widening: letting a memory be heard by more than it was said to. Nothing is ever widened but by a person's word."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from keepsaid.domain.commits import Commit
from keepsaid.domain.memory import GLOBAL, NewMemory, conversation_scope, person_scope
from keepsaid.domain.message import Trust
from keepsaid.domain.provenance import within


class Reach(StrEnum):
    """How far a memory is to be heard: in its whole conversation, in all direct chats of its person, or everywhere."""

    CONVERSATION = "conversation"
    PERSON = "person"
    GLOBAL = "global"


class Refusal(StrEnum):
    """Why a memory is not heard more widely."""

    GONE = "there is no such memory"
    NOT_THEIRS = "only who said it, or the owner, may let others hear it"
    OUTSIDE = "it came from outside, and is heard in its own lane alone"
    NOWHERE = "it was said in no conversation"
    BEFORE_OTHERS = "it was said before others, so it is nobody's own"
    NOT_WIDER = "who hears it now would not all hear it then"


@dataclass(frozen=True, slots=True)
class Widened:
    """From which scope to which a memory was let, by whom and why; both are the same where it was so already."""

    before: str
    after: str
    by: str
    reason: str
    at: int


@dataclass(frozen=True, slots=True)
class WidenMemory(Commit[Widened | Refusal]):
    """Let a memory be heard as far as `to`, where `by` may: who said it, or whom that is joined with, or the owner."""

    memory_id: int
    to: Reach
    by: str
    reason: str
    at: int


def wider(new: NewMemory, to: Reach) -> str | Refusal:
    """The scope a memory would have, or why it may not have it: all who hear it must hear it still."""
    if new.trust is Trust.EXTERNAL:
        return Refusal.OUTSIDE
    scope = _scope(new, to)
    if isinstance(scope, Refusal):
        return scope
    chats = {conversation_scope(new.lane): person_scope(new.chat_of)} if new.lane and new.chat_of else {}
    return scope if within(new.scope, scope, chats) else Refusal.NOT_WIDER


def _scope(new: NewMemory, to: Reach) -> str | Refusal:
    if to is Reach.GLOBAL:
        return GLOBAL
    if to is Reach.PERSON:
        return person_scope(new.chat_of) if new.chat_of else Refusal.BEFORE_OTHERS
    return conversation_scope(new.lane) if new.lane else Refusal.NOWHERE
