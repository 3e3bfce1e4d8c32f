"""Schedules: when they come, and one run for each of their times."""

from __future__ import annotations

import json
from dataclasses import replace

from keepsaid.adapters.sql.operations import journal, outbox, tasks
from keepsaid.adapters.sql.operations.work_views import content_of, run_of, schedule_of
from keepsaid.adapters.sql.query import SqlSession, column, every, load, one, only, run, scalar
from keepsaid.domain import commits, effects, message, reply, retention, scheduling
from keepsaid.domain.prompt import Json
from keepsaid.domain.schedule import LIVE, OPEN, Fire, NewSchedule, ScheduleRun, What, charged
from keepsaid.domain.states import TABLES, move
from keepsaid.domain.task import NewTask

SQL = load("schedules")
_TOPICS = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}


def add(db: SqlSession, commit: scheduling.AddSchedule, turn_id: int | None = None) -> bool:
    """Add one, if its id and its name are free; `turn_id` is the turn that asked for it."""
    new = commit.new
    if one(db, SQL["taken"], (new.id, new.source, new.name)) is not None:
        return False
    _insert(db, new, (commit.next_at, commit.at), turn_id)
    return True


def _insert(db: SqlSession, new: NewSchedule, times: tuple[int, int], turn_id: int | None = None) -> None:
    next_at, at = times
    db.post(SQL["add"], (new.id, new.source, new.name, *content_of(new), "active", next_at, at, turn_id))
    _write_event(db, "added", new.id, at, {"source": new.source, "what": str(new.what)})


def apply_effect(db: SqlSession, effect: effects.KeepTime | effects.EndSchedule, turn_id: int, at: int) -> None:
    if isinstance(effect, effects.KeepTime):
        add(db, scheduling.AddSchedule(effect.new, effect.next_at, at), turn_id)
    else:
        move_one(db, scheduling.MoveSchedule(effect.schedule_id, "cancel", at))


def scrub(db: SqlSession, schedule_id: int, at: int) -> bool:
    """Forget the words of a schedule; it comes no more. False when it had none."""
    if (state := scalar(db, SQL["words_of"], (schedule_id,))) is None:
        return False
    if state in LIVE:
        _stop(db, schedule_id, (state, "cancel"), at)
    for statement in ("scrub", "scrub_runs"):
        db.post(SQL[statement], (schedule_id,))
    return True


def replace_all(db: SqlSession, commit: scheduling.ReplaceSchedules) -> int:
    live = {known.new.name: known for known in map(schedule_of, every(db, SQL["of_source"], (commit.source,)))}
    changed, names = 0, {new.name for new, _ in commit.wanted}
    for new, next_at in commit.wanted:
        known = live.get(new.name)
        if known is None and next_at is not None:
            _insert(db, new, (next_at, commit.at))
        elif known is not None and not known.new.same(new):
            state = move("schedule", known.state, "resume") if known.state == "disabled" else known.state
            db.post(SQL["change"], (known.id, *content_of(new), state, next_at))
        else:
            continue
        changed += 1
    for name, known in live.items():
        if name not in names:
            _stop(db, known.id, (known.state, "cancel"), commit.at)
            changed += 1
    return changed


def fire(db: SqlSession, commit: scheduling.FireSchedules) -> int:
    return sum(_fire(db, fired, commit.at) for fired in commit.fires)


def _fire(db: SqlSession, fired: Fire, at: int) -> bool:
    stand = one(db, SQL["stand"], (fired.schedule_id,))
    if stand is None or stand[0] != "active" or stand[2] != fired.due_at:
        return False
    if fired.missed:
        _skip_new(db, (fired.schedule_id, fired.due_at), at, fired.missed)
    due = fired.run_at is not None and _make(db, (fired.schedule_id, fired.run_at), fired.ready_at, at)
    state = "active" if fired.next_at is not None else move("schedule", "active", "finish")
    db.post(SQL["move_on"], (fired.schedule_id, fired.next_at, state))
    if fired.next_at is None:
        _write_event(db, "done", fired.schedule_id, at)
    return due


def _make(db: SqlSession, key: tuple[int, int], ready_at: int, at: int) -> bool:
    schedule_id, due_at = key
    if one(db, SQL["known"], key) is not None:
        return False
    if one(db, SQL["under_way"], (schedule_id,)) is not None:
        _skip_new(db, key, at, "an earlier run is under way")
        return False
    db.post(SQL["keep_run"], (schedule_id, due_at, "due", max(at, ready_at), "", at, None))
    _write_event(db, "fired", schedule_id, at, {"due": due_at, "late_ms": max(0, at - due_at)})
    return True


def _skip_new(db: SqlSession, key: tuple[int, int], at: int, why: str) -> None:
    if run(db, SQL["keep_run"], (*key, "skipped", at, why, at, at)):
        _write_event(db, "skipped", key[0], at, {"due": key[1], "reason": why})


def run_now(db: SqlSession, commit: scheduling.RunNow) -> bool:
    stand = one(db, SQL["stand"], (commit.schedule_id,))
    if stand is None or stand[0] not in LIVE or one(db, SQL["under_way"], (commit.schedule_id,)) is not None:
        return False
    return _make(db, (commit.schedule_id, commit.at), commit.at, commit.at)


def _run(db: SqlSession, key: scheduling.RunKey) -> ScheduleRun | None:
    return next(map(run_of, every(db, SQL["run"], key)), None)


def begin(db: SqlSession, commit: scheduling.BeginRun) -> bool:
    if (known := _run(db, commit.run)) is None or known.state != "due":
        return False
    if commit.task is not None and not _make_task(db, commit, commit.task):
        return False
    db.post(SQL["move_run"], (*commit.run, move("run", known.state, "begin"), "", None))
    return True


def _make_task(db: SqlSession, commit: scheduling.BeginRun, task: NewTask) -> bool:
    """Make the task of a run; the run is skipped where an earlier one is not done."""
    if one(db, SQL["task_open"], (task.key,)) is not None:
        _skip(db, commit.run, scheduling.NOT_DONE, commit.at)
        return False
    turn_id = None if task.lane is None else only(db, SQL["asker"], (commit.run.schedule_id,))[0]
    tasks.keep(db, replace(task, turn_id=turn_id), commit.at, relays=False)
    db.post(SQL["set_about"], (*commit.run, task.id))
    return True


def end(db: SqlSession, commit: scheduling.EndRun) -> str:
    if (known := _run(db, commit.run)) is None or known.state not in OPEN:
        return ""
    state = move("run", known.state, commit.verb)
    released = commit.verb == "release"
    db.post(SQL["move_run"], (*commit.run, state, commit.reason, None if released else commit.at))
    if not released:
        _write_run_event(db, state, commit)
        is_delivered = _record_output(db, known, commit)
        failed = commit.verb == "fail"
        if failed or (commit.verb == "execute" and not is_delivered):
            return _charge(db, commit, failed=failed)
    return str(only(db, SQL["stand"], (commit.run.schedule_id,))[0])


def _record_output(db: SqlSession, known: ScheduleRun, commit: scheduling.EndRun) -> bool:
    """Record the output of a run; returns whether one has to be delivered."""
    if commit.message_id is not None:
        db.post(SQL["hear"], (*commit.run, move("output", known.output, "ask"), commit.message_id, None, ""))
        return True
    notice = None if commit.verb != "execute" or commit.notice is None else commit.notice.draft
    posted = notice or (None if known.target is None else commit.reply)
    if posted is None:
        return False
    db.post(SQL["hear"], (*commit.run, move("output", known.output, "post"), None, posted.id, ""))
    if commit.notice is not None:
        _notify(db, commit.notice, commit.at)
    elif known.target is not None:
        _post(db, known.target.lane, posted, commit.at)
        db.post(SQL["post"], (posted.id, commit.run.schedule_id))
    return True


def settle(db: SqlSession, commit: scheduling.SettleRun) -> str:
    if (known := _run(db, commit.run)) is None or (known.output, commit.verb) not in TABLES["output"]:
        return ""
    output = move("output", known.output, commit.verb)
    db.post(SQL["hear"], (*commit.run, output, None, commit.reply_id, commit.reason))
    if commit.verb == "answer":
        return str(only(db, SQL["stand"], (commit.run.schedule_id,))[0])
    _write_run_event(db, output, commit)
    return _charge(db, commit, failed=commit.verb == "lose")


def _write_run_event(db: SqlSession, topic: str, commit: scheduling.EndRun | scheduling.SettleRun) -> None:
    reason: dict[str, Json] = {"reason": commit.reason} if commit.reason else {}
    _write_event(db, topic, commit.run.schedule_id, commit.at, {"due": commit.run.due_at, **reason})


def _charge(db: SqlSession, commit: scheduling.EndRun | scheduling.SettleRun, *, failed: bool) -> str:
    schedule_id = commit.run.schedule_id
    before = schedule_of(only(db, SQL["one"], (schedule_id,)))
    state, failures, disabled = charged(before.state, before.failures, failed=failed)
    reason = commit.reason if disabled else before.reason
    db.post(SQL["stands"], (schedule_id, state, failures, reason))
    if disabled:
        _write_event(db, "disabled", schedule_id, commit.at, {"failures": failures, "reason": reason})
    if commit.notice is not None and (disabled or (failed and state == "done")):
        _notify(db, commit.notice, commit.at)
    return state


def _notify(db: SqlSession, notice: scheduling.Notice, at: int) -> None:
    if not outbox.keep_for_owner(db, notice.draft, at):
        _post(db, notice.lane, replace(notice.draft, notice=True), at)


def _post(db: SqlSession, lane: message.Lane, draft: reply.ReplyDraft, at: int) -> None:
    db.post(SQL["place_lane"], lane)
    outbox.keep_reply(db, only(db, SQL["lane_id"], lane)[0], (None, None), draft, at)


def move_one(db: SqlSession, commit: scheduling.MoveSchedule) -> bool:
    state = (one(db, SQL["stand"], (commit.schedule_id,)) or ("",))[0]
    if (state, commit.verb) not in TABLES["schedule"] or (commit.verb == "resume" and commit.next_at is None):
        return False
    if commit.verb == "resume":
        db.post(SQL["resume"], (commit.schedule_id, move("schedule", state, "resume"), commit.next_at))
        _write_event(db, "resumed", commit.schedule_id, commit.at)
    else:
        _stop(db, commit.schedule_id, (state, commit.verb), commit.at)
    return True


def _stop(db: SqlSession, schedule_id: int, change: tuple[str, str], at: int) -> None:
    topic = _TOPICS[change[1]]
    before = schedule_of(only(db, SQL["one"], (schedule_id,)))
    db.post(SQL["move_on"], (schedule_id, before.next_at, move("schedule", *change)))
    _write_event(db, topic, schedule_id, at)
    for due_at in column(db, SQL["waiting_runs"], (schedule_id,)):
        _skip(db, (schedule_id, due_at), f"the schedule was {topic}", at)


def _skip(db: SqlSession, key: tuple[int, int], why: str, at: int) -> None:
    db.post(SQL["move_run"], (*key, move("run", "due", "skip"), why, at))
    _write_event(db, "skipped", key[0], at, {"due": key[1], "reason": why})


def recover(db: SqlSession, commit: scheduling.RecoverRuns) -> int:
    """Begin runs of a former process again, or interrupt them."""
    running = every(db, SQL["running"])
    for schedule_id, due_at, what, text in running:
        key = scheduling.RunKey(schedule_id, due_at)
        if what == What.RUN and text in commit.again:
            db.post(SQL["move_run"], (*key, move("run", "running", "release"), "", None))
            continue
        ended = scheduling.EndRun(key, "interrupt", commit.at, "the process ended")
        db.post(SQL["move_run"], (*key, move("run", "running", "interrupt"), ended.reason, commit.at))
        _write_run_event(db, "interrupted", ended)
    return len(running)


def prune(db: SqlSession, commit: commits.Prune) -> retention.Pruned:
    """Remove runs that ended long ago with what they posted, and schedules that come no more."""
    old = every(db, SQL["old_runs"], (commit.before, commit.rows_max))
    for schedule_id, due_at, reply_id in old:
        db.post(SQL["forget_run"], (schedule_id, due_at))
        if reply_id is not None:
            db.post(SQL["forget_post"], (reply_id,))
    gone = run(db, SQL["forget_schedules"], (commit.before, commit.rows_max))
    return retention.Pruned(0, 0, 0, (len(old) + gone,) if commit.rows_max in (len(old), gone) else None)


def _write_event(db: SqlSession, what: str, schedule_id: int, at: int, more: dict[str, Json] | None = None) -> None:
    payload = json.dumps({"schedule": schedule_id, **(more or {})})
    journal.write_line(db, f"schedule.{what}", payload, str(schedule_id), at)
