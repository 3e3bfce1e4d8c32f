"""Two processes at one file: one that was taken for dead knows what its successor stored."""

from __future__ import annotations

from pathlib import Path

from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import IntakeResult
from keepsaid.domain.message import ProviderMarks
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.road import Road


async def test_a_key_that_another_process_stored_is_known(tmp_path: Path) -> None:
    former, successor = [await open_operations(tmp_path / "buffer.db") for _ in range(2)]
    keyed = said("hello", marks=ProviderMarks("k"))
    first = await Road(successor).hear(keyed)
    again = await Road(former, 100).hear(keyed)
    assert (again.intake, again.id, again.number) == (IntakeResult.DUPLICATE, first.id, first.number)
    assert (await Road(former, 200).hear(said("more"))).number == 2
    await former.close()
    await successor.close()
