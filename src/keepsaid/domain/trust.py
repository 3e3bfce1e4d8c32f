"""Trust: that of a turn is the least of its prompt; outside text stands between fences; texts of tools are pinned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from keepsaid.domain import context, ids, prompt, visibility
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.scene import PromptInputs
from keepsaid.text.normal import cut, digest, heading, opens
from keepsaid.values import frozen

DATA, END = "[Data", "[End of data"
_NUMBER_BYTES = 4
_ENDS = re.compile(r"\[\s{0,8}end\s{1,8}of\s{1,8}data[^\[\]\n]{0,40}\]", re.IGNORECASE)
_FOLD = "  "


@frozen
class Fence:
    """Writes texts as data. `key` is a secret of the home; the same text gets the same number in every prompt.

    The number is a keyed hash of the text. A text that named its own number would have another one, and without the key
    nobody can try.
    """

    key: bytes = b""

    def number(self, text: str) -> str:
        """The number of the fence around a text: eight hexadecimal digits."""
        return blake2b(text.encode("utf-8", "replace"), key=self.key, digest_size=_NUMBER_BYTES).hexdigest()

    def data(self, what: str, text: str) -> tuple[str, str, str]:
        """A text as data: the line before it, which says what it is, the text, and the line that ends it."""
        number = self.number(text)
        return f"{DATA} {number}: {what}]", enclosed(text), ending(number)

    def within(self, label: str, text: str, about: str = "") -> str:
        """A text below a label of ours, such as "[Quoted", and above the line that ends it."""
        number = self.number(text)
        return f"{label} {number}{about}]\n{enclosed(text)}\n{ending(number)}"


UNKEYED = Fence()
"""The fence of a home without a secret, such as one in memory."""


def ending(number: str) -> str:
    """The line that ends the fence with this number."""
    return f"{END} {number}]"


def enclosed(text: str) -> str:
    """A text of which no line looks as if a fence began or ended there, whatever its number."""
    if not opens(text):
        return text
    return "".join(_folded(line) if opens(line) else line for line in text.splitlines(keepends=True))


def _folded(line: str) -> str:
    plain = _ENDS.sub("(end of data)", line)
    return _FOLD + plain if heading(line).startswith((DATA.casefold(), END.casefold())) else plain


class ToolStanding(StrEnum):
    """Whether the owner accepted the text of a tool: this very text, an earlier one, or none."""

    ACCEPTED = "accepted"
    CHANGED = "changed"
    NEW = "new"


@frozen
class Described:
    """The whole text of a tool that a model would be shown: its description, and the schema of its arguments."""

    description: str
    schema: Mapping[str, Json]

    @property
    def pin(self) -> str:
        """The hash of the text, 32 hexadecimal digits. The order of keys in the schema does not count."""
        return digest(self.description, json.dumps(self.schema, sort_keys=True)).hex()


def standing_of(text: Described, accepted: Described | None) -> ToolStanding:
    """Where a text stands beside the one that was accepted of the same tool; None where none was."""
    if accepted is None:
        return ToolStanding.NEW
    return ToolStanding.ACCEPTED if text.pin == accepted.pin else ToolStanding.CHANGED


_WHAT_CHARS = 200
_NAME_CHARS = 40


class ShownSource(NamedTuple):
    """One thing that a prompt shows: its trust, what it is, and the name of who or what it comes from."""

    trust: Trust
    what: str
    whose: str = ""


@frozen
class Taint:
    """The trust of a turn, and the first thing shown that has no more trust than that (`why`)."""

    trust: Trust = Trust.OWNER
    why: str = ""

    def showing(self, things: Iterable[ShownSource]) -> Taint:
        """The taint after these things are shown too."""
        found = self
        for one in things:
            if visibility.least((one.trust, found.trust)) != found.trust:
                found = Taint(one.trust, cut(f"{one.what} {_named(one.whose)}" if one.whose else one.what, _WHAT_CHARS))
        return found

    def allows(self, needed: Trust) -> bool:
        """Whether a tool that needs this trust may be called."""
        return visibility.least((self.trust, needed)) == needed

    @property
    def as_json(self) -> Json:
        """The taint as the trace of a turn stores it."""
        return {"trust": str(self.trust), "why": self.why}


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
    taint = taint_in(scene.claimed.trace).showing(map(_of_message, scene.claimed.messages))
    return taint.showing(_history(scene.tail)).showing(_other_sources(scene))


def of_records(records: Iterable[prompt.Record]) -> Iterator[ShownSource]:
    """Records as parts of a prompt."""
    for one in records:
        if one.role is prompt.Role.TOOL:
            yield ShownSource(visibility.trust_of(one), "the output of the tool", one.speaker)
        elif one.role is prompt.Role.USER:
            yield ShownSource(visibility.trust_of(one), "an earlier message by", one.speaker)
        else:
            yield ShownSource(visibility.trust_of(one), "an earlier answer, given when outside text was shown")


def _history(tail: context.LaneTail) -> Iterator[ShownSource]:
    records = tail.recent.records
    old = visibility.least_of(records)
    for one in records:
        if one.role is prompt.Role.ASSISTANT and one.trust is None:
            yield ShownSource(old, "an earlier answer")
        else:
            yield from of_records((one,))
    for block in tail.reminders.blocks:
        yield ShownSource(block.trust, "memory shown in an earlier turn")
    for post in tail.posts:
        yield ShownSource(post.trust, "what a schedule posted")
    if tail.summary is not None:
        yield ShownSource(tail.summary.trust or Trust.EXTERNAL, "the summary of earlier messages")


def _of_message(message: StoredMessage) -> ShownSource:
    origin = message.inbound.origin
    trust = visibility.trust_of_words(origin.trust, message.text)
    return ShownSource(trust, f"{ids.show('message', message.id)} by", origin.name or origin.sender)


def _other_sources(scene: PromptInputs) -> Iterator[ShownSource]:
    """Quotes, memories, contributions, side work, summary and bulletin, in this order."""
    for quote in scene.attention.quotes:
        trust = visibility.trust_of_words(quote.trust, quote.text)
        yield ShownSource(trust, "a quoted message by", quote.speaker or "the agent")
    for memory in (one.hit.memory for one in scene.injection.candidates if one.chosen):
        yield ShownSource(memory.new.trust, f"{ids.show('memory', memory.id)} by", memory.new.speaker or "the agent")
    for added in scene.turn.contributions:
        if added.text:
            yield ShownSource(added.trust, "what is added to the prompt by the extension", added.name)
    texts = [(line, "side work under way") for line in scene.turn.side_work]
    texts.append((scene.standing.session_summary, "the summary of other threads"))
    texts.append((scene.standing.bulletin, "the bulletin"))
    yield from (ShownSource(visibility.trust_in(text), what) for text, what in texts if text)


def _named(name: str) -> str:
    """A name as it may stand in our own sentences: on one line, without brackets, and short."""
    plain = "".join(letter if letter.isalnum() or letter in " ._-@" else " " for letter in name)
    return cut(" ".join(plain.split()), _NAME_CHARS) or "somebody"
