"""Narrowing: which memories a search is meant for, beside its words."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.memory import Kind, Memory
from keepsaid.domain.words import fold, spelled


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
