"""The contract of notes."""

from __future__ import annotations

from keepsaid.domain.note import Note
from keepsaid.testing.contracts.road import Store


class NoteContract:
    """A note is there until it is over, or another stands in its place."""

    async def test_the_last_note_of_a_name_is_read_until_it_is_over(self, store: Store) -> None:
        """Each name by itself."""
        assert await store.note("code", 0) == ""
        await store.apply(Note("code", "first", 50, 1))
        await store.apply(Note("code", "secönd", 100, 2))
        await store.apply(Note("other", "{}", 10, 3))
        assert [await store.note(name, 5) for name in ("code", "other", "third")] == ["secönd", "{}", ""]
        assert [await store.note("code", at) for at in (99, 100)] == ["secönd", ""]

    async def test_what_is_over_goes_with_the_next(self, store: Store) -> None:
        """So that nothing is kept for longer than it was meant to be."""
        await store.apply(Note("code", "first", 50, 1))
        await store.apply(Note("other", "text", 90, 50))
        assert [await store.note(name, 0) for name in ("code", "other")] == ["", "text"]
