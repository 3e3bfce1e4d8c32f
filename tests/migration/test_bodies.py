"""A buffer of version 1 that holds a webhook opens, migrates, and deduplicates bodies from then on."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tests.migration.files import first_schema, rows

from keepsaid.adapters.sql.tombstones import seal
from keepsaid.adapters.sqlite.connection import SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import version
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import IntakeResult
from keepsaid_testkit.contracts.bodies import deliver, signed
from keepsaid_testkit.contracts.store_driver import StoreDriver


def _version_1(path: Path) -> None:
    """A file of version 1 with one delivery in it, as version 1 wrote it."""
    inbound = signed("guid-1")
    origin, lane = inbound.origin, inbound.lane
    with closing(open_writer(path)) as db:
        first_schema(db, "buffer")
        db.execute(
            "INSERT INTO lane (id, channel, account, conversation, key, head, priority, oldest_at, newest_at, last_id,"
            " due_at, chars) VALUES (1, ?, ?, ?, ?, 1, 10, 5, 5, 7, 5, 6)",
            tuple(lane),
        )
        db.execute(
            "INSERT INTO message (id, lane_id, number, sender, sender_name, trust, external_id, event, priority,"
            " received_at, key_hash, content_hash, seal, text, payload)"
            " VALUES (7, 1, 1, ?, ?, ?, ?, ?, 10, 5, ?, ?, ?, ?, ?)",
            (
                *(origin.sender, origin.name, str(origin.trust), inbound.marks.external_id, inbound.content.event),
                *(inbound.key_hash, inbound.content_hash, seal(inbound, 5)),
                *(inbound.content.text, inbound.content.payload),
            ),
        )


async def test_a_buffer_of_version_1_deduplicates_bodies_once_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "buffer.db"
    _version_1(path)
    store = await open_operations(path)
    road = StoreDriver(store)
    story = await road.story(7)
    assert (story.message.text, story.message.damaged) == ("opened", False)
    assert (await deliver(road, signed("guid-1"))).intake is IntakeResult.DUPLICATE
    first = await deliver(road, signed("guid-2", "closed"))
    again = await deliver(road, signed("guid-3", "closed"))
    await store.close()
    assert (first.intake, first.number, again) == (
        IntakeResult.STORED,
        2,
        first._replace(intake=IntakeResult.DUPLICATE),
    )
    with closing(SqliteSession(str(path))) as db:
        assert version(db, "buffer") >= 2
    assert rows(path, "SELECT external_id FROM redelivery") == [("guid-3",)]


async def test_a_message_that_is_gone_or_forgotten_leaves_no_delivery_id(tmp_path: Path) -> None:
    path = tmp_path / "buffer.db"
    store = await open_operations(path)
    road = StoreDriver(store)
    ids = [(await deliver(road, signed(f"guid-{text}", text))).id for text in "ab"]
    for text in "ab":
        await deliver(road, signed(f"again-{text}", text))
    await store.close()
    with closing(open_writer(path)) as db:
        db.execute("DELETE FROM message WHERE id = ?", (ids[0],))
        db.execute("UPDATE message SET forgotten_at = 9 WHERE id = ?", (ids[1],))
    assert rows(path, "SELECT * FROM redelivery") == []
