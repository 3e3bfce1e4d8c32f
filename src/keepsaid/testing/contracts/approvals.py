"""The contract of tasks that wait for the owner's approval: asked for once, decided once, and refused when overdue."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Receive, TurnCommit
from keepsaid.domain.effects import MakeTask
from keepsaid.domain.message import Trust
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.task import CALL_EXPIRED, DecideTask, ExpireTasks, NewTask
from keepsaid.domain.work import TaskKind
from keepsaid.testing.builders import AT_ONCE, CHANNEL, ROOM, arrival, lane_of, outcome, said
from keepsaid.testing.contracts.road import Road, Store
from keepsaid.testing.contracts.tasks import Desk


def waiting(number: int, until: int | None) -> NewTask:
    """A call that may be approved until a time."""
    return NewTask(number, 'press {"n": 1}', f"call:{number}", TaskKind.CALL, review="a stranger", expires_at=until)


class ApprovalContract:
    """Tasks that wait for a person from the start."""

    async def test_an_overdue_task_fails_and_no_other_does(self, store: Store) -> None:
        """Only tasks that wait and have a time; each once."""
        desk = Desk(store)
        assert await store.tasks.next_expiry() is None
        await desk.make(waiting(1, 50), waiting(2, 60), waiting(3, None), NewTask(4, "a", after=(1,)))
        assert await store.tasks.next_expiry() == 50
        assert await store.apply(ExpireTasks(49)) == 0
        assert await store.apply(ExpireTasks(50)) == 1
        assert await desk.states() == {1: "failed", 2: "needs_review", 3: "needs_review", 4: "failed"}
        now = await desk.now(1)
        assert (now.reason, now.ended_at, now.fence, now.result) == (CALL_EXPIRED, 50, 0, "")
        assert await store.tasks.next_expiry() == 60
        assert await store.apply(ExpireTasks(999)) == 1
        assert await store.apply(ExpireTasks(9_999)) == 0
        assert await store.tasks.next_expiry() is None
        assert (await desk.now(3)).state == "needs_review"
        assert (await desk.told()).count("task.failed") == 3

    async def test_a_decided_task_does_not_expire(self, store: Store) -> None:
        """Approved, begun, completed or refused: the time counts no more."""
        desk = Desk(store)
        await desk.make(*(waiting(number, 50) for number in (1, 2, 3)))
        assert await store.apply(DecideTask(1, 10, approved=True))
        assert await store.apply(DecideTask(2, 10, approved=False, reason="no"))
        assert await store.apply(ExpireTasks(60)) == 1
        assert await desk.states() == {1: "pending", 2: "failed", 3: "failed"}
        assert ((await desk.now(2)).reason, (await desk.now(3)).reason) == ("no", CALL_EXPIRED)

    async def test_an_overdue_task_cannot_be_approved(self, store: Store) -> None:
        """Even before it is failed; it can be refused."""
        desk = Desk(store)
        await desk.make(waiting(1, 50))
        assert not await store.apply(DecideTask(1, 50, approved=True))
        assert (await desk.now(1)).state == "needs_review"
        assert await store.apply(DecideTask(1, 50, approved=False, reason="no"))

    async def test_a_request_is_made_and_told_with_its_turn(self, store: Store) -> None:
        """And not at all where the turn is refused; its words and its time are as they were given."""
        desk, road = Desk(store), Road(store)
        inbound = said()
        owner = replace(inbound.origin, trust=Trust.OWNER, direct=True)
        assert await store.apply(Receive(arrival(road.new_id(), replace(inbound, origin=owner)), AT_ONCE))
        await road.route(lane_of())
        claimed = await road.claim_one()
        batch = claimed.batch
        notice = ReplyDraft(900, "may it be pressed?", notice=True)
        asked = MakeTask(800, "press {}", "call:1", (), True, TaskKind.CALL, "a stranger", 70, notice)
        end = replace(outcome(), effects=(asked,))
        assert not await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence + 1, end, None, 7))
        assert (await desk.states(), await store.tasks.next_expiry()) == ({}, None)
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        task = await desk.now(800)
        assert (task.state, task.kind, task.description, task.reason) == (
            "needs_review",
            TaskKind.CALL,
            "press {}",
            "a stranger",
        )
        assert (task.expires_at, task.lane, task.turn_id, task.outside) == (70, lane_of(), claimed.turn_id, True)
        [told] = await store.unseen(CHANNEL, ROOM)
        assert (told.draft.text, told.draft.notice) == ("may it be pressed?", True)
