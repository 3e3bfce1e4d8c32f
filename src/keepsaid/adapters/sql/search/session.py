"""What a session of memory has beside a database's own: tombstones, index, likeness (short: each is elsewhere)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keepsaid.adapters.sql.search import piece_index, vector_index
from keepsaid.adapters.sql.tombstones import TombstoneKeyring


class SearchedSession:
    """The part of `MemorySession` that is written once for every database."""

    _keyring: TombstoneKeyring | None = None

    def attach(self, keyring: TombstoneKeyring) -> None:
        """Make tombstones with a keyring from now on."""
        self._keyring = keyring

    def tombstones(self, digests: Iterable[bytes]) -> Sequence[bytes]:
        return () if self._keyring is None else self._keyring.compute_tombstones(digests)

    reindex = piece_index.reindex
    count_terms = piece_index.count_terms
    alike = vector_index.alike
