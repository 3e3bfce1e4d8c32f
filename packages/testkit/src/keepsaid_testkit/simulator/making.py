"""Making: the model has work done, thinks aside and keeps schedules; each of these ends once, and none is lost."""

from __future__ import annotations

import json
from collections import Counter

from keepsaid.domain.commits import Commit, TurnCommit
from keepsaid.domain.effects import KeepTime, MakeTask
from keepsaid.domain.prompt import Json, ToolCall
from keepsaid.domain.schedule import ScheduleRun
from keepsaid.domain.task import ENDED, EndTask, TaskFilter
from keepsaid.engine.tasks import RelayTerms
from keepsaid.pipeline.tools.conversation import ADD
from keepsaid.pipeline.tools.tasks import BRANCH, CREATE
from keepsaid.ports.model import ModelRequest
from keepsaid.ports.store import Store
from keepsaid_testkit.simulator.fault_profile import YEAR_MS
from keepsaid_testkit.simulator.ledger import RunRecord
from keepsaid_testkit.simulator.net import Net

_SOON_S = 60
_ALL = 1 << 20
_HEARD = ("delivered", "undelivered", "silent")


def choose_tool_calls(net: Net, request: ModelRequest, word: str) -> tuple[ToolCall, ...]:
    """The tool calls for side work that the model makes, under a unique word.

    There are none if the fault profile has none. If the clock is set by years, no schedule is made: it would be
    due only in years.
    """
    if not net.happens(net.weather.making):
        return ()
    timely = all(abs(ms) < YEAR_MS for ms in net.weather.jumps)
    known = {CREATE, BRANCH, *((ADD,) if timely else ())}
    names = sorted(tool.name for tool in request.tools if tool.name in known)
    if not names:
        return ()
    chance = net.chance
    name, mine = chance.choice(names), f"{word}-{chance.randrange(1_000_000)}"
    what = chance.choice(("say", "ask"))
    told: dict[str, dict[str, Json]] = {
        CREATE: {"task": f"do {mine}"},
        BRANCH: {"about": f"think of {mine}"},
        ADD: {"what": what, "text": f"{what} {mine}", "in_s": chance.randrange(1, _SOON_S)},
    }
    return (ToolCall(f"call-{chance.randrange(1_000_000)}", name, json.dumps(told[name])),)


def note_made(seen: RunRecord, commit: Commit[object], result: object) -> None:
    """What a commit that was taken made."""
    if not result or not isinstance(commit, TurnCommit | EndTask):
        return
    for effect in commit.outcome.effects if isinstance(commit, TurnCommit) else commit.effects:
        if isinstance(effect, MakeTask):
            seen.tasks.add(effect.id)
        elif isinstance(effect, KeepTime):
            seen.schedules.add(effect.new.id)


async def all_ended(store: Store, seen: RunRecord) -> bool:
    """Whether nothing that was made is still to come, under way, or to be delivered to its lane."""
    if any(lane.rounds < RelayTerms().rounds_max for lane in await store.tasks.list_unreported_tasks(_ALL)):
        return False
    if await store.schedules.next_due() is not None:
        return False
    runs = [run for number in seen.schedules for run in await store.schedules.runs(number, _ALL)]
    return all([run.output not in ("asked", "waiting") or await _waits_for_owner(store, run) for run in runs])


async def _waits_for_owner(store: Store, run: ScheduleRun) -> bool:
    """Whether a run waits for the owner's decision on the batch that is to answer it."""
    story = None if run.message_id is None else await store.story(run.message_id)
    return run.output == "asked" and story is not None and story.batch is not None and story.batch.state == "review"


async def undone(store: Store, seen: RunRecord) -> list[str]:
    """Tasks and schedules that were lost, came twice, or have not ended, in words."""
    return [*await _tasks(store, seen), *await _schedules(store, seen)]


async def _tasks(store: Store, seen: RunRecord) -> list[str]:
    known = {task.id: task for task in await store.tasks.find(TaskFilter(limit=_ALL))}
    found = [f"task {number}, which a turn made, is lost" for number in sorted(seen.tasks - set(known))]
    topics = {f"task.{state}" for state in ENDED}
    ends = Counter(one.correlation_id for one in await store.journal.events(0, _ALL) if one.topic in topics)
    for number, task in sorted(known.items()):
        told, over = ends[str(number)], task.state in ENDED
        if not over and task.state != "needs_review":
            found.append(f"task {number} is {task.state} at the end")
        if told != over and not seen.jumped:  # with another clock the journal may be pruned
            found.append(f"task {number} is {task.state}, and {told} ends of it are published")
    return found


async def _schedules(store: Store, seen: RunRecord) -> list[str]:
    found = []
    for number in sorted(seen.schedules):
        schedule, runs = await store.schedules.schedule(number), await store.schedules.runs(number, _ALL)
        if schedule is None or schedule.state != "done":
            found.append(f"schedule {number} is {'lost' if schedule is None else schedule.state}")
        elif [run.state for run in runs] != ["executed"] or not (
            runs[0].output in _HEARD or await _waits_for_owner(store, runs[0])
        ):
            found.append(f"schedule {number} was to come once: {[(run.state, run.output) for run in runs]}")
    return found
