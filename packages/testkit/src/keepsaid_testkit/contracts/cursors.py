"""(short: one commit) The contract of cursors: how far an account was read is kept, apart from all others."""

from __future__ import annotations

from keepsaid.domain.line import Cursor, MoveCursors
from keepsaid_testkit.contracts.store_driver import ContractStore


async def move(store: ContractStore, channel: str, *cursors: Cursor, at: int = 1) -> None:
    """Keep how far a channel was read."""
    await store.apply(MoveCursors(channel, cursors, at))


class CursorContract:
    """The newest value of a name holds; other names, accounts and channels are left alone."""

    async def test_an_account_that_was_never_read_has_none(self, store: ContractStore) -> None:
        assert await store.cursors("discord", "1") == {}

    async def test_the_newest_value_holds(self, store: ContractStore) -> None:
        await move(store, "discord", Cursor("1", "seq", "4"), Cursor("1", "session", '{"id": "a"}'))
        await move(store, "discord", Cursor("1", "seq", "5"), at=2)
        assert await store.cursors("discord", "1") == {"seq": "5", "session": '{"id": "a"}'}

    async def test_accounts_and_channels_are_apart(self, store: ContractStore) -> None:
        await move(store, "discord", Cursor("1", "seq", "4"), Cursor("2", "seq", "7"))
        await move(store, "matrix", Cursor("1", "seq", "9"))
        assert await store.cursors("discord", "1") == {"seq": "4"}
        assert await store.cursors("discord", "2") == {"seq": "7"}
        assert await store.cursors("matrix", "1") == {"seq": "9"}

    async def test_any_text_is_kept_as_it_is(self, store: ContractStore) -> None:
        value = 'ünïcode "quoted" \n 🕯️' + "x" * 5_000
        await move(store, "nostr", Cursor("npub", "wss://relay.example/?a=b", value))
        assert await store.cursors("nostr", "npub") == {"wss://relay.example/?a=b": value}

    async def test_moving_none_changes_nothing(self, store: ContractStore) -> None:
        await move(store, "discord")
        assert await store.cursors("discord", "1") == {}
