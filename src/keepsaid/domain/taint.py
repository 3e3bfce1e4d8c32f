"""Taint: the trust of a turn, which is the least trust of everything that its prompt shows.

This module is the only place where it is computed. A turn starts with `taint_of` its scene and adds what each step
shows (`Taint.showing`): messages that join, and the output of tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from keepsaid.domain.context import LaneTail
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Injection
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json, Record, Role
from keepsaid.domain.scene import PromptInputs, Quote
from keepsaid.domain.visibility import least_of, trust_in, trust_of, trust_of_words
from keepsaid.text.normal import cut

_WHAT_CHARS = 200
_NAME_CHARS = 40
_RANK = (Trust.EXTERNAL, Trust.KNOWN, Trust.OWNER)


class ShownSource(NamedTuple):
    """One thing that a prompt shows: its trust, what it is, and the name of who or what it comes from."""

    trust: Trust
    what: str
    whose: str = ""


@dataclass(frozen=True, slots=True)
class Taint:
    """The trust of a turn, and the first thing shown that has no more trust than that (`why`)."""

    trust: Trust = Trust.OWNER
    why: str = ""

    def showing(self, things: Iterable[ShownSource]) -> Taint:
        """The taint after these things are shown too."""
        found = self
        for one in things:
            if is_less(one.trust, found.trust):
                found = Taint(one.trust, cut(f"{one.what} {_named(one.whose)}" if one.whose else one.what, _WHAT_CHARS))
        return found

    def allows(self, needed: Trust) -> bool:
        """Whether a tool that needs this trust may be called."""
        return not is_less(self.trust, needed)

    @property
    def as_json(self) -> Json:
        """The taint as the trace of a turn stores it."""
        return {"trust": str(self.trust), "why": self.why}


def is_less(trust: Trust, than: Trust) -> bool:
    """Whether a trust is lower than another one."""
    return _RANK.index(trust) < _RANK.index(than)


def taint_in(trace: Json) -> Taint:
    """The taint that an earlier attempt of the turn stored in its trace; that of the owner where there is none."""
    stored = trace.get("taint") if isinstance(trace, dict) else None
    if not isinstance(stored, dict) or stored.get("trust") not in tuple(Trust):
        return Taint()
    return Taint(Trust(str(stored["trust"])), str(stored.get("why", "")))


def taint_of(scene: PromptInputs) -> Taint:
    """The taint of a turn before its first step: messages, history, summaries, quotes, memory and contributions.

    A retry shows again what an earlier attempt was shown, so that its taint is never higher than the stored one.
    """
    claimed = scene.claimed
    return (
        taint_in(claimed.trace)
        .showing(map(of_message, claimed.messages))
        .showing(_history(scene.tail))
        .showing(map(_quoted, scene.attention.quotes))
        .showing(_recalled(scene.injection))
        .showing(_contributed(scene))
        .showing(_text(scene.standing.session_summary, "the summary of other threads"))
        .showing(_text(scene.standing.bulletin, "the bulletin"))
    )


def of_message(message: StoredMessage) -> ShownSource:
    """A message, with its sender, as part of a prompt."""
    origin = message.inbound.origin
    trust = trust_of_words(origin.trust, message.text)
    return ShownSource(trust, f"{show('message', message.id)} by", origin.name or origin.sender)


def of_records(records: Iterable[Record]) -> Iterator[ShownSource]:
    """Records as parts of a prompt."""
    for one in records:
        if one.role is Role.TOOL:
            yield ShownSource(trust_of(one), "the output of the tool", one.speaker)
        elif one.role is Role.USER:
            yield ShownSource(trust_of(one), "an earlier message by", one.speaker)
        else:
            yield ShownSource(trust_of(one), "an earlier answer, given when outside text was shown")


def _history(tail: LaneTail) -> Iterator[ShownSource]:
    records = tail.recent.records
    old = least_of(records)
    for one in records:
        if one.role is Role.ASSISTANT and one.trust is None:
            yield ShownSource(old, "an earlier answer")
        else:
            yield from of_records((one,))
    for block in tail.reminders.blocks:
        yield ShownSource(block.trust, "memory shown in an earlier turn")
    for post in tail.posts:
        yield ShownSource(post.trust, "what a schedule posted")
    if tail.summary is not None:
        yield ShownSource(tail.summary.trust or Trust.EXTERNAL, "the summary of earlier messages")


def _quoted(quote: Quote) -> ShownSource:
    return ShownSource(trust_of_words(quote.trust, quote.text), "a quoted message by", quote.speaker or "the agent")


def _recalled(injection: Injection) -> Iterator[ShownSource]:
    for one in injection.candidates:
        if one.chosen:
            new = one.hit.memory.new
            yield ShownSource(new.trust, f"{show('memory', one.hit.memory.id)} by", new.speaker or "the agent")


def _contributed(scene: PromptInputs) -> Iterator[ShownSource]:
    for one in scene.passing.contributions:
        if one.text:
            yield ShownSource(one.trust, "what is added to the prompt by the extension", one.name)
    for line in scene.passing.side_work:
        yield from _text(line, "side work under way")


def _text(text: str, what: str) -> tuple[ShownSource, ...]:
    return (ShownSource(trust_in(text), what),) if text else ()


def _named(name: str) -> str:
    """A name as it may stand in our own sentences: on one line, without brackets, and short."""
    plain = "".join(letter if letter.isalnum() or letter in " ._-@" else " " for letter in name)
    return cut(" ".join(plain.split()), _NAME_CHARS) or "somebody"
