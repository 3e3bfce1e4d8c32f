"""What was recorded of a conversation, as adapters read it: in order, without what was withdrawn."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from keepsaid.frameworks.bridge import MemoryBridge, run_key

_PAGE, _PAGES_MAX = 200, 50
_WITHDRAWN = re.compile(r"\[keepsaid\] withdrawn: messages (\d+) to (\d+)")
_MARKER = "keepsaid"


class RecordedLine(NamedTuple):
    """One thing that was said: its position in the conversation, `user` or `assistant`, and the words."""

    position: int
    role: str
    text: str


class RecordedTalk:
    """The talk of one conversation; each read adds what is new. It only grows: what is withdrawn is marked so.

    A mark is a record of its own, so that other processes leave out the same. Memory still recalls what was withdrawn;
    who wants that gone forgets it.
    """

    def __init__(self, bridge: MemoryBridge, conversation: str) -> None:
        self.bridge = bridge
        self.conversation = conversation
        self._lines: list[RecordedLine] = []
        self._withdrawn: set[int] = set()
        self._after = 0

    @property
    def lines(self) -> Sequence[RecordedLine]:
        """What was read so far and is not withdrawn, oldest first."""
        return [one for one in self._lines if one.position not in self._withdrawn]

    async def read(self) -> Sequence[RecordedLine]:
        """What was said and is not withdrawn, oldest first; what was read before, where memory does not answer."""
        await self.bridge.run(self._read())
        return self.lines

    async def add(self, *said: tuple[str, str]) -> None:
        """Record what was said after the lines that were read: the same in the same place is recorded once."""
        key = run_key(str(self._after), *(text for role, text in said if role == "user"))
        await self.bridge.record(self.conversation, key, *said)

    async def withdraw(self, lines: Sequence[RecordedLine]) -> bool:
        """Mark lines that follow one another as withdrawn; False where memory does not answer."""
        first, last = lines[0].position, lines[-1].position
        text = f"[keepsaid] withdrawn: messages {first} to {last}"
        mark = {"role": "tool", "name": _MARKER, "text": text, "key": run_key(text)}
        if await self.bridge.run(self.bridge.memory.record(self.conversation, mark)) is None:
            return False
        self._withdrawn.update(range(first, last + 1))
        return True

    async def _read(self) -> None:
        for _ in range(_PAGES_MAX):
            found = await self.bridge.memory.transcript(self.conversation, self._after, _PAGE)
            for one in found["messages"]:
                if one["position"] > self._after:
                    self._take(one["position"], one["role"], one["speaker"], one["text"])
            if len(found["messages"]) < _PAGE:
                return

    def _take(self, position: int, role: str, speaker: str, text: str) -> None:
        self._after = position
        if (role, speaker) == ("tool", _MARKER) and (mark := _WITHDRAWN.fullmatch(text)):
            self._withdrawn.update(range(int(mark[1]), int(mark[2]) + 1))
        elif role in ("user", "assistant"):
            self._lines.append(RecordedLine(position, role, text))
