"""Search of memories: filters beside the words, and vector spaces, which keep vectors of different models apart."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.memory import Kind, Memory
from keepsaid.text.words import fold, spelled


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What a search keeps to; None for no limit. Times are milliseconds UTC, `since` and `until` of what was said.

    `as_of` keeps to what was known and held true at that time. `person` is who said it or whom it is about.
    """

    kind: Kind | None = None
    person: str = ""
    since: int | None = None
    until: int | None = None
    as_of: int | None = None

    def about(self, memory: Memory) -> bool:
        """Whether the person said it or is whom it is about: every word of the name, whatever its case."""
        wanted = {fold(word) for word in spelled(self.person)}
        named = (memory.new.speaker, memory.new.subject)
        return not self.person or any(wanted and wanted <= {fold(word) for word in spelled(name)} for name in named)


@dataclass(frozen=True, slots=True)
class VectorSpace:
    """Which model made vectors: its name, revision, how many numbers a vector has, and the hash of its weights."""

    model: str
    revision: str
    dimension: int
    weights_hash: bytes

    def __str__(self) -> str:
        """Name it for people."""
        return f"{self.model} ({self.dimension} numbers)"


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a space is filled: every piece up to this one has its vector, or needs none."""

    space: VectorSpace
    piece_id: int


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A piece of a memory that has no vector yet."""

    piece_id: int
    text: str


@dataclass(frozen=True, slots=True)
class NewVector:
    """The vector of a piece: numbers of 32 bits as they lie in memory, of length 1."""

    piece_id: int
    vector: bytes
