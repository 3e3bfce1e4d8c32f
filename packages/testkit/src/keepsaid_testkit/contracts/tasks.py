"""The contract of tasks: each ends once, its result is stored before anybody is notified, and its dependents follow."""

from __future__ import annotations

import json
from dataclasses import replace

from keepsaid.domain.batch import TaskDraft
from keepsaid.domain.commits import ExpireLeases, Prune, StepEnd, StepStart
from keepsaid.domain.message import Trust
from keepsaid.domain.process import Relinquish, VoidLeases
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.retention import Stale
from keepsaid.domain.route import Action, Notify, OnCrash, TaskKind, WorkTerms
from keepsaid.domain.task import (
    CALL_LEFT,
    CRASHED,
    DEPTH_MAX,
    CancelTask,
    ClaimTasks,
    CreateTasks,
    DecideTask,
    EndTask,
    NewTask,
    RenewTask,
    ResultsKept,
    RunTask,
    Task,
    TaskEnd,
    TaskFilter,
    TellStatus,
)
from keepsaid.domain.turn import Step, StepKind, Usage
from keepsaid.testing.builders import CHANNEL, ROOM, lane_of, said, verdict
from keepsaid_testkit.contracts.store_driver import LEASE_MS, ContractStore, StoreDriver

_SPAWN = verdict(action=Action.SPAWN)


class TaskDriver:
    """Driver that creates, claims and ends tasks in a store."""

    def __init__(self, store: ContractStore) -> None:
        self.store = store

    async def make(self, *tasks: NewTask, at: int = 0) -> str:
        """Make tasks; returns why not, or ""."""
        return await self.store.apply(CreateTasks(tasks, at))

    async def claim(self, at: int = 0, limit: int = 10, owner: str = "one") -> tuple[Task, ...]:
        """Claim what is due."""
        return await self.store.apply(ClaimTasks(owner, limit, at, at + LEASE_MS))

    async def begin(self, new: NewTask, at: int = 0) -> Task:
        """Make a task and claim it."""
        assert await self.make(new, at=at) == ""
        [task] = await self.claim(at)
        return task

    async def end(self, task: Task, how: TaskEnd = TaskEnd.COMPLETE, text: str = "looked at", at: int = 0) -> str:
        """End a run."""
        return await self.store.apply(EndTask(task.id, task.fence, how, at, text))

    async def now(self, task_id: int) -> Task:
        """A task as it stands."""
        story = await self.store.tasks.task(task_id)
        assert story is not None
        return story.task

    async def states(self) -> dict[int, str]:
        """Where every task stands."""
        return {task.id: task.state for task in await self.store.tasks.find(TaskFilter(limit=1_000))}

    async def list_topics(self) -> list[str]:
        """The topics of all task events in the journal, in order."""
        return [one.topic for one in await self.store.journal.events(0, 1_000) if one.topic.startswith("task.")]

    async def call(self, task: Task, *, repeatable: bool, finish: bool = False) -> None:
        """Begin a call of a task, and end it."""
        step = Step(0, StepKind.TOOL, "post", b"hash", repeatable=repeatable)
        assert await self.store.apply(StepStart(task.id, task.fence, step, 1))
        if finish:
            assert await self.store.apply(StepEnd(task.id, task.fence, 0, "posted", Usage(), 2))


class TaskContract:
    """One task from its beginning to its end."""

    async def test_a_result_is_saved_with_the_end(self, store: ContractStore) -> None:
        """Told once, and not again."""
        desk = TaskDriver(store)
        task = await desk.begin(NewTask(1, "look at it", "pr-7", lane=None, priority=50), at=5)
        assert (task.state, task.key, task.fence, task.started_at, task.kind) == (
            "running",
            "pr-7",
            1,
            5,
            TaskKind.WORKER,
        )
        ended = EndTask(1, 1, TaskEnd.COMPLETE, 9, "all is well", usage=Usage(3, 4, 5))
        assert await store.apply(ended) == "completed"
        now = await desk.now(1)
        assert (now.result, now.reason, now.ended_at, now.usage) == ("all is well", "", 9, Usage(3, 4, 5))
        assert await store.apply(ended) == ""
        assert await desk.list_topics() == ["task.created", "task.started", "task.completed"]
        overview = await store.overview()
        assert (overview.tasks, overview.usage) == ({"completed": 1}, Usage(3, 4, 5))

    async def test_the_best_and_then_the_oldest_is_claimed_first(self, store: ContractStore) -> None:
        """Of one key one at a time."""
        desk = TaskDriver(store)
        made = [NewTask(1, "a"), NewTask(2, "b", priority=10), NewTask(3, "c", "k"), NewTask(4, "d", "k")]
        assert await desk.make(*made) == ""
        assert [task.id for task in await desk.claim(limit=2)] == [2, 1]
        [third] = await desk.claim()
        assert third.id == 3
        assert await desk.claim() == ()
        assert await store.tasks.next_ready(TaskKind.WORKER) is None
        await desk.end(third)
        assert [task.id for task in await desk.claim()] == [4]

    async def test_an_error_is_charged_until_the_last(self, store: ContractStore) -> None:
        """Between them it waits."""
        desk = TaskDriver(store)
        task = await desk.begin(NewTask(1, "a", terms=WorkTerms(attempts_max=2)))
        again = EndTask(1, task.fence, TaskEnd.RETRY, 3, "it broke", ready_at=50, usage=Usage(3, 4, None))
        assert await store.apply(again) == "pending"
        assert await desk.claim(at=49) == ()
        assert await store.tasks.next_ready(TaskKind.WORKER) == 50
        [task] = await desk.claim(at=50)
        assert (task.attempts, task.fence) == (1, 2)
        assert await desk.end(task, TaskEnd.RETRY, "it broke again", at=60) == "failed"
        now = await desk.now(1)
        assert (now.attempts, now.reason, now.ended_at) == (2, "it broke again", 60)

    async def test_an_outage_is_counted_and_not_charged(self, store: ContractStore) -> None:
        """And a stop not even counted."""
        desk = TaskDriver(store)
        task = await desk.begin(NewTask(1, "a"))
        waits = EndTask(1, task.fence, TaskEnd.RELEASE, 3, "no answer", ready_at=50, deferred=True)
        assert await store.apply(waits) == "pending"
        now = await desk.now(1)
        assert (now.attempts, now.deferrals, now.deferred_from, now.reason) == (0, 1, 50, "no answer")
        [task] = await desk.claim(at=50)
        await desk.end(task, TaskEnd.RELEASE, "", at=51)
        assert ((await desk.now(1)).deferrals, (await desk.now(1)).state) == (1, "pending")
        assert await store.apply(RunTask(1, 0))
        assert not await store.apply(RunTask(2, 0))

    async def test_an_old_fence_is_refused(self, store: ContractStore) -> None:
        """Whatever it wants to write."""
        desk = TaskDriver(store)
        old = await desk.begin(NewTask(1, "a"))
        assert await store.apply(RenewTask(1, old.fence, 5_000))
        assert await store.apply(TellStatus(1, old.fence, "half way"))
        assert await store.apply(ExpireLeases(4_999)) == 0
        assert await store.apply(ExpireLeases(5_000)) == 1
        [new] = await desk.claim(at=5_000)
        step = Step(0, StepKind.TOOL, "post", b"hash")
        assert not await store.apply(StepStart(1, old.fence, step, 1))
        assert not await store.apply(RenewTask(1, old.fence, 9_000))
        assert not await store.apply(TellStatus(1, old.fence, "all done"))
        assert await desk.end(old) == ""
        assert (await desk.now(1)).status == "half way"
        assert await desk.end(new) == "completed"

    async def test_a_stop_returns_what_an_owner_holds(self, store: ContractStore) -> None:
        """Uncharged."""
        desk = TaskDriver(store)
        await desk.begin(NewTask(1, "a"))
        assert await store.apply(Relinquish("one", 3)) == 1
        now = await desk.now(1)
        assert (now.state, now.attempts, now.crashes) == ("pending", 0, 0)

    async def test_who_is_told_of_the_end(self, store: ContractStore) -> None:
        """The owner where he last wrote in a direct chat, if the terms say so."""
        desk, road = TaskDriver(store), StoreDriver(store, 100)
        inbound = said()
        owner = replace(inbound.origin, trust=Trust.OWNER, direct=True)
        await road.receive(replace(inbound, origin=owner))
        await road.receive(said(room="elsewhere"))
        for number, notify in enumerate(Notify, 1):
            task = await desk.begin(NewTask(number, "a", terms=WorkTerms(notify=notify)))
            notice = ReplyDraft(200 + number, f"{number} completed")
            await store.apply(EndTask(task.id, task.fence, TaskEnd.COMPLETE, 1, "well", notice=notice))
            task = await desk.begin(NewTask(10 + number, "a", terms=WorkTerms(notify=notify)))
            notice = ReplyDraft(210 + number, f"{number} failed")
            await store.apply(EndTask(task.id, task.fence, TaskEnd.FAIL, 1, "ill", notice=notice))
        told = await store.unseen(CHANNEL, ROOM)
        assert sorted(one.draft.text for one in told) == ["2 failed", "3 completed", "3 failed"]
        assert all(one.draft.notice for one in told)


class TaskGraphContract:
    """Tasks that wait for others."""

    async def test_what_waits_goes_on_when_all_are_completed(self, store: ContractStore) -> None:
        """In waves."""
        desk = TaskDriver(store)
        assert await desk.make(NewTask(3, "c", after=(1, 2)), NewTask(1, "a"), NewTask(2, "b", after=(1,))) == ""
        assert await desk.states() == {1: "pending", 2: "blocked", 3: "blocked"}
        [first] = await desk.claim()
        await desk.end(first)
        assert await desk.states() == {1: "completed", 2: "pending", 3: "blocked"}
        [second] = await desk.claim()
        await desk.end(second)
        [third] = await desk.claim()
        assert (third.id, third.after) == (3, (1, 2))
        story = await store.tasks.task(1)
        assert story is not None
        assert story.waiting == (2, 3)

    async def test_what_waits_fails_with_the_reason(self, store: ContractStore) -> None:
        """All of it, each told once; what was cancelled counts as lost."""
        desk = TaskDriver(store)
        await desk.make(NewTask(1, "a"), NewTask(2, "b", after=(1,)), NewTask(3, "c", after=(2,)), NewTask(4, "d"))
        first, *_ = await desk.claim()
        await desk.end(first, TaskEnd.FAIL, "the roof fell in", at=7)
        assert await desk.states() == {1: "failed", 2: "failed", 3: "failed", 4: "running"}
        assert "the roof fell in" in (await desk.now(3)).reason
        assert (await desk.now(3)).ended_at == 7
        assert (await desk.list_topics()).count("task.failed") == 3
        await desk.make(NewTask(5, "e", after=(4,)))
        assert await store.apply(CancelTask(4, 8, "not wanted"))
        assert ((await desk.now(5)).state, "not wanted" in (await desk.now(5)).reason) == ("failed", True)

    async def test_what_cannot_end_is_refused(self, store: ContractStore) -> None:
        """With nothing made."""
        desk = TaskDriver(store)
        assert "wait for one another" in await desk.make(NewTask(1, "a", after=(2,)), NewTask(2, "b", after=(1,)))
        assert "does not exist" in await desk.make(NewTask(1, "a"), NewTask(2, "b", after=(9,)))
        assert "deep" in await desk.make(NewTask(1, "a", depth=DEPTH_MAX + 1))
        await desk.make(NewTask(1, "a"))
        await store.apply(CancelTask(1, 2, "no"))
        assert "is cancelled" in await desk.make(NewTask(2, "b", after=(1,)))
        assert await desk.states() == {1: "cancelled"}

    async def test_what_is_made_after_the_end_is_pending(self, store: ContractStore) -> None:
        """There is nothing to wait for."""
        desk = TaskDriver(store)
        await desk.end(await desk.begin(NewTask(1, "a")))
        await desk.make(NewTask(2, "b", after=(1,)))
        assert (await desk.now(2)).state == "pending"


class TaskCrashContract:
    """The process dies."""

    async def crash(self, store: ContractStore, owner: str = "next", at: int = 90) -> None:
        """Another owner starts."""
        await store.apply(VoidLeases(owner, at, "died", ()))

    async def test_what_was_running_runs_again(self, store: ContractStore) -> None:
        """Its steps are replayed; what waited for a time is due."""
        desk = TaskDriver(store)
        task = await desk.begin(NewTask(1, "a"))
        await desk.call(task, repeatable=False, finish=True)
        other = await desk.begin(NewTask(2, "b"))
        await store.apply(EndTask(2, other.fence, TaskEnd.RETRY, 3, "it broke", ready_at=9_000))
        await self.crash(store)
        now = await desk.now(1)
        assert (now.state, now.attempts, now.crashes, now.reason) == ("pending", 0, 1, CRASHED)
        assert (await desk.now(2)).ready_at == 90
        story = await store.tasks.task(1)
        assert story is not None
        assert [(one.state, one.output) for one in story.steps] == [("finished", "posted")]

    async def test_a_call_that_must_not_be_repeated_parks(self, store: ContractStore) -> None:
        """Whatever the terms say; a person decides, and says what it came to."""
        desk = TaskDriver(store)
        for number, on_crash in enumerate((None, OnCrash.REQUEUE, OnCrash.FAIL), 1):
            task = await desk.begin(NewTask(number, "a", terms=WorkTerms(on_crash=on_crash)))
            await desk.call(task, repeatable=False)
        await self.crash(store)
        assert await desk.states() == {1: "needs_review", 2: "needs_review", 3: "needs_review"}
        assert (await desk.now(1)).reason == CALL_LEFT
        assert (await desk.list_topics()).count("task.needs_review") == 3
        assert await store.apply(DecideTask(1, 95, approved=True, result="it was posted"))
        assert await store.apply(DecideTask(2, 95, approved=True))
        assert await store.apply(DecideTask(3, 95, approved=False, reason="no"))
        assert not await store.apply(DecideTask(3, 95, approved=False, reason="no"))
        assert await desk.states() == {1: "pending", 2: "pending", 3: "failed"}
        outputs = [story.steps for one in (1, 2) if (story := await store.tasks.task(one)) is not None]
        assert [[step.output for step in steps] for steps in outputs] == [["it was posted"], []]

    async def test_the_terms_say_what_a_death_means(self, store: ContractStore) -> None:
        """Of itself it runs again."""
        desk = TaskDriver(store)
        await desk.begin(NewTask(1, "a", terms=WorkTerms(on_crash=OnCrash.FAIL)))
        await desk.begin(NewTask(2, "b", terms=WorkTerms(on_crash=OnCrash.REVIEW)))
        await desk.make(NewTask(3, "c", after=(1,)))
        await self.crash(store)
        assert await desk.states() == {1: "failed", 2: "needs_review", 3: "failed"}

    async def test_three_deaths_in_a_row_ask_a_person(self, store: ContractStore) -> None:
        """A step that is done between them tells that it goes on."""
        desk = TaskDriver(store)
        await desk.make(NewTask(1, "a"))
        for number in range(2):
            await desk.claim(90, owner=f"o{number}")
            await self.crash(store)
        [task] = await desk.claim(90, owner="o2")
        await desk.call(task, repeatable=True, finish=True)
        for number in range(3):
            assert (await desk.now(1)).crashes == number
            await self.crash(store)
            await desk.claim(90, owner=f"p{number}")
        assert (await desk.now(1)).state == "needs_review"


class TaskLifeContract:
    """What surrounds tasks: rules that spawn them, memory, forgetting and the pruner."""

    async def test_what_was_begun_takes_in_no_more(self, store: ContractStore) -> None:
        """What comes while it runs is another task, which runs after it."""
        desk, road = TaskDriver(store), StoreDriver(store, 100)
        terms = WorkTerms(skill="review", notify=Notify.ALWAYS, tools=("diff",))
        for number in range(3):
            await road.receive(said(str(number)))
            await road.route(lane_of(), number, _SPAWN, task=TaskDraft(900 + number, "k", f"look {number}", terms))
            if number == 1:
                [task] = await desk.claim(at=1)
        assert (task.id, task.description, task.messages, task.terms) == (900, "look 0\nlook 1", 2, terms)
        assert await desk.claim(at=2) == ()
        assert await desk.end(task, TaskEnd.RETRY, "it broke", at=2) == "pending"
        assert sorted((await desk.states()).items()) == [(900, "pending"), (902, "pending")]

    async def test_results_wait_until_memory_has_them(self, store: ContractStore) -> None:
        """With the messages they were made of; one that is empty does not."""
        desk, road = TaskDriver(store), StoreDriver(store, 100)
        heard = await road.receive(said("hello"))
        await road.route(lane_of(), 0, _SPAWN, task=TaskDraft(900, "k", "look at it"))
        [task] = await desk.claim()
        await desk.end(task)
        await desk.end(await desk.begin(NewTask(2, "b")), text="")
        [work] = await store.tasks.results(10)
        assert (work.task.id, work.task.result, work.messages) == (900, "looked at", (heard.id,))
        assert await store.apply(ResultsKept((900, 2))) == 1
        assert await store.tasks.results(10) == []

    async def test_a_cancelled_run_is_refused(self, store: ContractStore) -> None:
        """And nothing ends twice."""
        desk = TaskDriver(store)
        task = await desk.begin(NewTask(1, "a"))
        assert await store.apply(CancelTask(1, 4, "not wanted"))
        assert not await store.apply(CancelTask(1, 5, "not wanted"))
        assert await desk.end(task) == ""
        now = await desk.now(1)
        assert (now.state, now.reason, now.result, now.ended_at) == ("cancelled", "not wanted", "", 4)

    async def test_they_are_found_by_what_they_are(self, store: ContractStore) -> None:
        """Newest first."""
        desk = TaskDriver(store)
        await desk.make(NewTask(1, "a", "k"), NewTask(2, "b"), NewTask(3, "c", "k", after=(1,)))
        found = await store.tasks.find(TaskFilter(key="k"))
        assert [one.id for one in found] == [3, 1]
        assert [one.id for one in await store.tasks.find(TaskFilter(state="pending", limit=1))] == [2]
        assert await store.tasks.find(TaskFilter(lane=lane_of("nowhere"))) == []
        assert await store.tasks.task(9) is None

    async def test_the_pruner_takes_what_nobody_waits_for(self, store: ContractStore) -> None:
        """Once memory has it."""
        desk = TaskDriver(store)
        for number in (1, 2, 3):
            await desk.end(await desk.begin(NewTask(number, "a")), at=number)
        await desk.make(NewTask(4, "d", after=(1,)))
        await store.apply(ResultsKept((1, 2)))
        pruned = await store.apply(Prune(Stale.TASKS, 100, 200))
        assert (pruned.after, await desk.states()) == (None, {1: "completed", 3: "completed", 4: "pending"})

    async def test_the_journal_tells_what_happened(self, store: ContractStore) -> None:
        """In ids and numbers."""
        desk = TaskDriver(store)
        await desk.make(NewTask(1, "secret"), NewTask(2, "secret", after=(1,)))
        [task] = await desk.claim()
        await desk.end(task, TaskEnd.FAIL, "secret")
        told = [one for one in await store.journal.events(0, 100) if one.topic.startswith("task.")]
        assert [(one.topic, one.payload) for one in told] == [
            ("task.created", {"task": 1, "kind": "worker", "after": 0}),
            ("task.created", {"task": 2, "kind": "worker", "after": 1}),
            ("task.started", {"task": 1, "attempt": 1}),
            ("task.failed", {"task": 1, "attempts": 1}),
            ("task.failed", {"task": 2, "attempts": 0, "upstream": 1}),
        ]
        assert "secret" not in json.dumps([dict(one.payload) for one in told])
