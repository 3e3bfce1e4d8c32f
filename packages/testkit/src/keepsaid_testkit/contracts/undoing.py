"""The contract of undo: the newest memory of a conversation is taken back, and what it replaced is active again.

As for `LearningContract`, every call of the fixture `factory` opens the same store again.
"""

from __future__ import annotations

import json
from dataclasses import replace

from keepsaid.domain.learning import STORED_IN, LearnOutcome, UndoRequest
from keepsaid.domain.memory import Listener, Source, conversation_scope
from keepsaid_testkit.contracts.learning import LearningFactory, lives, said
from keepsaid_testkit.contracts.memories import AUDIT, STRAND

ANN = Listener(STRAND, "ann", direct=True)


class UndoContract:
    """What `/remember` and the memory tools of turns stored can be taken back, one memory a request."""

    async def test_undo_takes_back_the_newest_memory_and_restores_the_replaced_one(
        self, factory: LearningFactory
    ) -> None:
        """Once for each request; the sources of what was taken back do not teach it again."""
        async with factory() as store:
            await store.learn([lives("m1", "Porto", 100)], 100)
            spoken = {"lane": STRAND, "speaker_id": "ann"}
            await store.learn([said("command:7", "the shop opens at nine o'clock", 150, **spoken)], 150)
            told = (Source("message", "8"),)
            [lisbon] = await store.learn([lives("turn:8:0", "Lisbon", 200, sources=told, **spoken)], 200)
            [kept] = await store.revisions.remembered(ANN, 8, ())
            assert (kept.memory.text, len(kept.replaces)) == ("Ann lives in Lisbon", 1)
            assert [one.memory.text for one in await store.revisions.remembered(ANN, 3, (7,))] == [
                "the shop opens at nine o'clock"
            ]
            for _ in "once", "again after a crash":
                done = await store.revisions.undo(UndoRequest(ANN, "message:9", 300))
                assert done is not None
                assert [done.memory.text, *(one.text for one in done.restored)] == [
                    "Ann lives in Lisbon",
                    "Ann lives in Porto",
                ]
            assert await store.revisions.remembered(ANN, 8, ()) == []
            [again] = await store.learn([lives("finding:1:0", "Lisbon", 200, sources=told, **spoken)], 400)
            assert again.how is LearnOutcome.KNOWN
            assert [one.new.value for one in await store.find(AUDIT, [], 9) if one.new.value] == ["Porto"]
            assert await store.revisions.undo(UndoRequest(replace(ANN, person="bob"), "message:10", 400)) is None
            done = await store.revisions.undo(UndoRequest(ANN, "message:11", 400))
            assert done is not None
            assert (done.memory.new.key, done.restored) == ("command:7", ())
            assert await store.revisions.undo(UndoRequest(ANN, "message:12", 400)) is None
            assert await store.revisions.archive([lisbon.memory_id], 500, back=True) == (lisbon.memory_id,)
            assert [one.new.value for one in await store.find(AUDIT, [], 9) if one.new.value] == ["Lisbon"]

    async def test_undo_of_a_correction_restores_the_corrected_memory(self, factory: LearningFactory) -> None:
        """What was put right without a slot is active again."""
        async with factory() as store:
            [one] = await store.learn([said("m1", "the cat sleeps on the red sofa")], 100)
            here = json.dumps({STORED_IN: conversation_scope(STRAND)})
            right = said("turn:5:0", "the cat sleeps on the blue chair", 200, speaker_id="ann", metadata=here)
            await store.revisions.correct(one.memory_id, right, 200)
            done = await store.revisions.undo(UndoRequest(ANN, "message:9", 300))
            assert done is not None
            assert [(each.id, each.state, each.valid_to) for each in done.restored] == [(one.memory_id, "active", None)]
            assert [each.id for each in await store.find(AUDIT, [], 9)] == [one.memory_id]
            said_again = said("finding:2:0", "the cat sleeps on the blue chair", 400, sources=right.sources)
            assert [each.how for each in await store.learn([said_again], 400)] == [LearnOutcome.KNOWN]
            said_later = said("m9", "the cat sleeps on the blue chair", 500)
            assert [each.how for each in await store.learn([said_later], 500)] == [LearnOutcome.NEW]
