"""The contract of tasks that wait for the owner's approval: asked for once, decided once, and refused when overdue."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import MarkReplyShown, Prune, Settle, TakeReplies, TurnCommit
from keepsaid.domain.effects import MakeTask
from keepsaid.domain.forgetting import ForgetTargets, RequestForgetting, ScrubForgotten
from keepsaid.domain.message import Trust
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.retention import Stale
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import CALL_EXPIRED, ClaimTasks, DecideTask, ExpireTasks, NewTask
from keepsaid.testing.builders import CHANNEL, ROOM, lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver
from keepsaid_testkit.contracts.tasks import TaskDriver


def waiting(number: int, until: int | None) -> NewTask:
    """A call that may be approved until a time."""
    return NewTask(number, 'press {"n": 1}', f"call:{number}", TaskKind.CALL, review="a stranger", expires_at=until)


async def owner_speaks(store: ContractStore) -> StoreDriver:
    """The owner says something in his direct chat, and it is routed."""
    road, inbound = StoreDriver(store), said()
    await road.receive(replace(inbound, origin=replace(inbound.origin, trust=Trust.OWNER, direct=True)))
    await road.route(lane_of())
    return road


class ApprovalContract:
    """Tasks that wait for a person from the start."""

    async def test_an_overdue_task_fails_and_no_other_does(self, store: ContractStore) -> None:
        """Only tasks that wait and have a time; each once."""
        desk = TaskDriver(store)
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
        assert (await desk.list_topics()).count("task.failed") == 3

    async def test_a_decided_task_does_not_expire(self, store: ContractStore) -> None:
        """Approved, begun, completed or refused: the time counts no more."""
        desk = TaskDriver(store)
        await desk.make(*(waiting(number, 50) for number in (1, 2, 3)))
        assert await store.apply(DecideTask(1, 10, approved=True))
        assert await store.apply(DecideTask(2, 10, approved=False, reason="no"))
        assert await store.apply(ExpireTasks(60)) == 1
        assert await desk.states() == {1: "pending", 2: "failed", 3: "failed"}
        assert ((await desk.now(2)).reason, (await desk.now(3)).reason) == ("no", CALL_EXPIRED)

    async def test_an_overdue_task_cannot_be_approved(self, store: ContractStore) -> None:
        """Even before it is failed; it can be refused."""
        desk = TaskDriver(store)
        await desk.make(waiting(1, 50))
        assert not await store.apply(DecideTask(1, 50, approved=True))
        assert (await desk.now(1)).state == "needs_review"
        assert await store.apply(DecideTask(1, 50, approved=False, reason="no"))

    async def test_a_request_is_made_and_told_with_its_turn(self, store: ContractStore) -> None:
        """And not at all where the turn is refused; its words and its time are as they were given."""
        desk, road = TaskDriver(store), await owner_speaks(store)
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

    async def test_a_request_that_waits_already_is_not_made_again(self, store: ContractStore) -> None:
        """Nor told again, as long as it waits, is due or runs; after that it is."""
        desk = TaskDriver(store)
        await owner_speaks(store)

        async def ask(number: int) -> None:
            notice = ReplyDraft(700 + number, f"notice {number}", notice=True)
            await desk.make(replace(waiting(number, 500), key="call:same", notice=notice))

        await ask(1)
        await ask(2)
        assert await desk.states() == {1: "needs_review"}
        assert await store.apply(DecideTask(1, 10, approved=True))
        await ask(3)
        [task] = await store.apply(ClaimTasks("one", 1, 11, 99, kind=TaskKind.CALL))
        await ask(4)
        assert await desk.end(task, at=12) == "completed"
        await ask(5)
        assert await desk.states() == {1: "completed", 5: "needs_review"}
        assert [one.draft.text for one in await store.unseen(CHANNEL, ROOM)] == ["notice 1", "notice 5"]
        assert [one.draft.text for one in await store.unseen(CHANNEL, ROOM, 1)] == ["notice 1"]

    async def test_a_notice_is_forgotten_with_its_task(self, store: ContractStore) -> None:
        """Of the turn that asked; what waits is cancelled, and the text that was delivered is deleted."""
        desk = TaskDriver(store)
        road = await owner_speaks(store)
        claimed = await road.claim_one()
        batch = claimed.batch
        notice = ReplyDraft(900, "may the secret be pressed?", notice=True)
        asked = MakeTask(800, 'press {"n": "secret"}', "call:1", (), True, TaskKind.CALL, "secret", 70, notice)
        end = replace(outcome(), effects=(asked,))
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        assert await store.apply(RequestForgetting(50, "a turn", "owner", ForgetTargets(turns=(claimed.turn_id,)), 20))
        await store.apply(ScrubForgotten(50, 21))
        task = await desk.now(800)
        assert (task.state, task.description, task.key, task.reason) == ("cancelled", "", "", "")
        assert [one.draft.text for one in await store.unseen(CHANNEL, ROOM)] == []
        told = [one for one in await store.journal.events(0, 100) if one.topic.startswith("reply.")]
        assert "secret" not in str([dict(one.payload) for one in told])

    async def test_a_notice_that_is_being_sent_is_waited_for(self, store: ContractStore) -> None:
        """What was taken may arrive; its words go when that is known."""
        road = await owner_speaks(store)
        claimed = await road.claim_one()
        batch = claimed.batch
        asked = MakeTask(800, "press {}", "call:1", (), True, TaskKind.CALL, "x", 70, ReplyDraft(900, "may it?"))
        end = replace(outcome(""), records=(), effects=(asked,))
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        [taken] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 10))
        assert taken.draft.text == "may it?"
        assert await store.apply(RequestForgetting(50, "a turn", "owner", ForgetTargets(turns=(claimed.turn_id,)), 20))
        assert (await store.apply(ScrubForgotten(50, 21))).waiting == 1
        assert await store.apply(Settle(900, taken.fence, Delivered.CONFIRMED, 22))
        assert (await store.apply(ScrubForgotten(50, 23))).waiting == 0

    async def test_a_notice_goes_with_the_task_that_is_pruned(self, store: ContractStore) -> None:
        """Once it was delivered."""
        desk = TaskDriver(store)
        await owner_speaks(store)
        for number in (1, 2):
            await desk.make(replace(waiting(number, 500), notice=ReplyDraft(700 + number, f"notice {number}")))
            assert await store.apply(DecideTask(number, 10, approved=False))
        assert await store.apply(MarkReplyShown(701, 11))
        await store.apply(Prune(Stale.TASKS, 100, 200))
        assert await desk.states() == {}
        assert [one.draft.text for one in await store.unseen(CHANNEL, ROOM)] == ["notice 2"]
        assert (await store.overview()).replies == {"pending": 1}
