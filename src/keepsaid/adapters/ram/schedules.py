"""Schedules: when they come, and one run for each of their times."""

from __future__ import annotations

import json
from dataclasses import replace

from keepsaid.adapters.ram.outbox import keep_for_owner
from keepsaid.adapters.ram.schedule_row import RunRow, ScheduleRow
from keepsaid.adapters.ram.state import LaneRow, ReplyRow, State
from keepsaid.adapters.ram.task_making import keep
from keepsaid.domain.commits import Prune
from keepsaid.domain.effects import EndSchedule, KeepTime
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.retention import Pruned
from keepsaid.domain.schedule import LIVE, OPEN, Fire, NewSchedule, Run, What, charged
from keepsaid.domain.scheduling import (
    NOT_DONE,
    AddSchedule,
    BeginRun,
    EndRun,
    FireSchedules,
    MoveSchedule,
    Notice,
    RecoverRuns,
    ReplaceSchedules,
    RunKey,
    RunNow,
    SettleRun,
)
from keepsaid.domain.states import TABLES
from keepsaid.domain.task import NewTask

_TOLD = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}


def add(state: State, commit: AddSchedule, turn_id: int | None = None) -> bool:
    """Add one, if its id and its name are free; `turn_id` is the turn that asked for it."""
    new = commit.new
    if new.id in state.schedules or (new.name and _named(state, new.source, new.name)):
        return False
    _insert(state, new, commit.next_at, commit.at)
    state.schedules[new.id].turn_id = turn_id
    return True


def _insert(state: State, new: NewSchedule, next_at: int, at: int) -> None:
    state.schedules[new.id] = ScheduleRow(new, next_at, at)
    _tell(state, "added", new.id, at, {"source": new.source, "what": str(new.what)})


def _named(state: State, source: str, name: str) -> ScheduleRow | None:
    live = (row for row in state.schedules.values() if row.state in LIVE and row.new.source == source)
    return next((row for row in live if row.new.name == name), None)


def leave(state: State, effect: KeepTime | EndSchedule, turn_id: int, at: int) -> None:
    """What a turn asked for."""
    if isinstance(effect, KeepTime):
        add(state, AddSchedule(effect.new, effect.next_at, at), turn_id)
    else:
        move_one(state, MoveSchedule(effect.schedule_id, "cancel", at))


def made_by(state: State, turn_id: int) -> list[int]:
    """The schedules that a turn asked for."""
    return [one for one, row in state.schedules.items() if row.turn_id == turn_id]


def scrub(state: State, schedule_id: int, at: int) -> bool:
    """Forget the words of a schedule; it comes no more. False when it had none."""
    row = state.schedules.get(schedule_id)
    if row is None or not row.new.text:
        return False
    if row.state in LIVE:
        _stop(state, row, "cancel", at)
    target = row.new.target and replace(row.new.target, url=None)
    row.new, row.reason = replace(row.new, text="", name="", target=target), ""
    for run in (one for one in state.runs.values() if one.run.schedule_id == row.new.id):
        run.run = replace(run.run, reason="", target=run.run.target and replace(run.run.target, url=None))
    return True


def asked_by(state: State, schedule_id: int) -> list[int]:
    """The messages that a schedule has put into the buffer."""
    runs = (row.run for row in state.runs.values() if row.run.schedule_id == schedule_id)
    return [run.message_id for run in runs if run.message_id is not None]


def posted_by(state: State, schedule_id: int) -> list[ReplyRow]:
    """What a schedule has said and is not emptied."""
    runs = (row.run for row in state.runs.values() if row.run.schedule_id == schedule_id)
    found = (state.replies.get(run.reply_id or 0) for run in runs)
    return [reply for reply in found if reply is not None and reply.posted_after is not None and reply.draft.text]


def replace_all(state: State, commit: ReplaceSchedules) -> int:
    """Let the schedules of a source be these."""
    changed, names = 0, {new.name for new, _ in commit.wanted}
    for new, next_at in commit.wanted:
        row = _named(state, commit.source, new.name)
        if row is None and next_at is not None:
            _insert(state, new, next_at, commit.at)
        elif row is not None and not row.new.same(new):
            row.new, row.next_at, row.failures, row.reason = replace(new, id=row.new.id), next_at, 0, ""
            if row.state == "disabled":
                row.go("resume")
        else:
            continue
        changed += 1
    for row in list(state.schedules.values()):
        if row.state in LIVE and row.new.source == commit.source and row.new.name not in names:
            _stop(state, row, "cancel", commit.at)
            changed += 1
    return changed


def fire(state: State, commit: FireSchedules) -> int:
    """Make the runs of times that have come."""
    return sum(_fire(state, one, commit.at) for one in commit.fires)


def _fire(state: State, one: Fire, at: int) -> bool:
    row = state.schedules.get(one.schedule_id)
    if row is None or row.state != "active" or row.next_at != one.due_at:
        return False
    if one.missed and (row.new.id, one.due_at) not in state.runs:
        _skip_new(state, row, one.due_at, at, one.missed)
    due = one.run_at is not None and _make(state, row, (one.run_at, one.ready_at), at)
    row.next_at = one.next_at
    if one.next_at is None:
        row.go("finish")
        _tell(state, "done", row.new.id, at)
    return due


def _make(state: State, row: ScheduleRow, times: tuple[int, int], at: int) -> bool:
    due_at, ready_at = times
    if (row.new.id, due_at) in state.runs:
        return False
    if _under_way(state, row.new.id):
        _skip_new(state, row, due_at, at, "an earlier run is under way")
        return False
    run = Run(row.new.id, due_at, "due", max(at, ready_at), target=row.new.target, fired_at=at)
    state.runs[row.new.id, due_at] = RunRow(run)
    _tell(state, "fired", row.new.id, at, {"due": due_at, "late_ms": max(0, at - due_at)})
    return True


def _under_way(state: State, schedule_id: int) -> bool:
    mine = (row.run for row in state.runs.values() if row.run.schedule_id == schedule_id)
    return any(run.state in OPEN or run.output == "asked" for run in mine)


def _skip_new(state: State, row: ScheduleRow, due_at: int, at: int, why: str) -> None:
    run = Run(row.new.id, due_at, "skipped", at, target=row.new.target, reason=why, fired_at=at, ended_at=at)
    state.runs[row.new.id, due_at] = RunRow(run)
    _tell(state, "skipped", row.new.id, at, {"due": due_at, "reason": why})


def run_now(state: State, commit: RunNow) -> bool:
    """A run for this moment."""
    row = state.schedules.get(commit.schedule_id)
    if row is None or row.state not in LIVE or _under_way(state, row.new.id):
        return False
    return _make(state, row, (commit.at, commit.at), commit.at)


def begin(state: State, commit: BeginRun) -> bool:
    """A due run begins."""
    row = state.runs.get(commit.run)
    if row is None or row.run.state != "due":
        return False
    if commit.task is not None and not _set_about(state, row, commit, commit.task):
        return False
    row.end("begin", commit.at, "")
    row.run = replace(row.run, ended_at=None)
    return True


def _set_about(state: State, row: RunRow, commit: BeginRun, task: NewTask) -> bool:
    """Make the task of a run; the run is skipped where an earlier one is not done."""
    if _has_open_task(state, task.key):
        row.end("skip", commit.at, NOT_DONE)
        _told_of(state, "skipped", EndRun(commit.run, "skip", commit.at, NOT_DONE))
        return False
    turn_id = None if task.lane is None else state.schedules[commit.run.schedule_id].turn_id
    keep(state, replace(task, turn_id=turn_id), commit.at, relays=False)
    row.run = replace(row.run, task_id=task.id)
    return True


def end(state: State, commit: EndRun) -> str:
    """A run ends."""
    row = state.runs.get(commit.run)
    if row is None or row.run.state not in OPEN:
        return ""
    row.end(commit.verb, commit.at, commit.reason)
    if commit.verb == "release":
        return state.schedules[commit.run.schedule_id].state
    _told_of(state, row.run.state, commit)
    if commit.message_id is not None:
        row.hear("ask")
        row.run = replace(row.run, message_id=commit.message_id)
    elif commit.verb == "execute" and commit.notice is not None:
        row.hear("post")
        row.run = replace(row.run, reply_id=commit.notice.draft.id)
        _notify(state, commit.notice, commit.at)
    elif commit.reply is not None and (target := row.run.target) is not None:
        row.hear("post")
        row.run = replace(row.run, reply_id=commit.reply.id)
        _post(state, target.lane, commit.reply, commit.at)
        posted = state.replies[commit.reply.id]
        posted.posted_after = len(state.lanes[target.lane].transcript)
        posted.trust = state.schedules[commit.run.schedule_id].new.trust
    failed = commit.verb == "fail"
    if failed or (commit.verb == "execute" and row.run.output == "none"):
        return _charge(state, commit, failed=failed)
    return state.schedules[commit.run.schedule_id].state


def _has_open_task(state: State, key: str) -> bool:
    return any(row.key == key and row.task.ended_at is None for row in state.tasks.values())


def settle(state: State, commit: SettleRun) -> str:
    """What is heard of a run moves on."""
    row = state.runs.get(commit.run)
    if row is None or (row.run.output, commit.verb) not in TABLES["output"]:
        return ""
    row.hear(commit.verb, commit.reason)
    row.run = replace(row.run, reply_id=row.run.reply_id or commit.reply_id)
    if commit.verb == "answer":
        return state.schedules[commit.run.schedule_id].state
    _told_of(state, row.run.output, commit)
    return _charge(state, commit, failed=commit.verb == "lose")


def _told_of(state: State, topic: str, commit: EndRun | SettleRun) -> None:
    told: dict[str, Json] = {"due": commit.run.due_at, **({"reason": commit.reason} if commit.reason else {})}
    _tell(state, topic, commit.run.schedule_id, commit.at, told)


def _charge(state: State, commit: EndRun | SettleRun, *, failed: bool) -> str:
    row = state.schedules[commit.run.schedule_id]
    row.state, row.failures, disabled = charged(row.state, row.failures, failed=failed)
    if disabled:
        row.reason = commit.reason
        told: dict[str, Json] = {"failures": row.failures, "reason": commit.reason}
        _tell(state, "disabled", row.new.id, commit.at, told)
    if commit.notice is not None and (disabled or (failed and row.state == "done")):
        _notify(state, commit.notice, commit.at)
    return row.state


def _notify(state: State, notice: Notice, at: int) -> None:
    if not keep_for_owner(state, notice.draft, at):
        _post(state, notice.lane, replace(notice.draft, notice=True), at)


def _post(state: State, lane: Lane, draft: ReplyDraft, at: int) -> None:
    state.lanes.setdefault(lane, LaneRow(lane))
    reply = ReplyRow(draft, lane, 0, None, at, at)
    state.replies[draft.id] = state.unsettled[draft.id] = reply


def move_one(state: State, commit: MoveSchedule) -> bool:
    """Pause, resume or cancel."""
    row = state.schedules.get(commit.schedule_id)
    if row is None or (row.state, commit.verb) not in TABLES["schedule"]:
        return False
    if commit.verb != "resume":
        _stop(state, row, commit.verb, commit.at)
        return True
    if commit.next_at is None:
        return False
    row.go("resume")
    row.next_at, row.failures, row.reason = commit.next_at, 0, ""
    _tell(state, "resumed", row.new.id, commit.at)
    return True


def _stop(state: State, row: ScheduleRow, verb: str, at: int) -> None:
    row.go(verb)
    _tell(state, _TOLD[verb], row.new.id, at)
    for run in list(state.runs.values()):
        if run.run.schedule_id == row.new.id and run.run.state == "due":
            why = f"the schedule was {_TOLD[verb]}"
            run.end("skip", at, why)
            _tell(state, "skipped", row.new.id, at, {"due": run.run.due_at, "reason": why})


def recover(state: State, commit: RecoverRuns) -> int:
    """What a former process was running begins again, or is interrupted."""
    running = [row for row in state.runs.values() if row.run.state == "running" and row.run.task_id is None]
    for row in running:
        new = state.schedules[row.run.schedule_id].new
        if new.what is What.RUN and new.text in commit.again:
            row.end("release", commit.at, "")
            continue
        row.end("interrupt", commit.at, "the process ended")
        key = RunKey(row.run.schedule_id, row.run.due_at)
        _told_of(state, "interrupted", EndRun(key, "interrupt", commit.at, "the process ended"))
    return len(running)


def prune(state: State, commit: Prune) -> Pruned:
    """Remove runs that ended long ago with what they posted, and schedules that come no more."""
    for key, row in list(state.runs.items()):
        settled = row.run.state not in OPEN and row.run.output not in ("asked", "waiting")
        if settled and row.run.fired_at < commit.before:
            del state.runs[key]
            reply = state.replies.get(row.run.reply_id or 0)
            if reply is not None and not reply.batch_id:
                del state.replies[reply.draft.id]
    kept = {schedule_id for schedule_id, _ in state.runs}
    for number, schedule in list(state.schedules.items()):
        ended = schedule.state in ("done", "cancelled") and schedule.created_at < commit.before
        if ended and number not in kept:
            del state.schedules[number]
    return Pruned(0, 0, 0, None)


def _tell(state: State, what: str, schedule_id: int, at: int, more: dict[str, Json] | None = None) -> None:
    payload = {"schedule": schedule_id, **(more or {})}
    state.tell(f"schedule.{what}", json.dumps(payload), str(schedule_id), at)
