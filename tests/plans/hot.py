"""The hot statements: each with the values it is run with, and the steps of SQLite's machine it may take."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw
from tests.plans.large import NOW, QUEUED_FROM, STEP, WAITING_FROM

from keepsaid.adapters.sql.query import load, many
from keepsaid.adapters.sqlite.connection import SqliteSession

_NOWHERE = SqliteSession(":memory:")


def numbers(values: Sequence[int]) -> object:
    """What numbers are bound as."""
    return _NOWHERE.numbers(values)


LATER = NOW + 86_400_000
_MESSAGE = 5 * STEP + 7
_WAITING = WAITING_FROM + 3
_PUSHED = json.dumps(["github"])


@dataclass(frozen=True, slots=True)
class Hot:
    """A statement of a page, the values it is tried with, its bound, and `why` that is more than a few hundred.

    `walks` says why it may walk a large table. `row` is one of the rows of a statement that takes many.
    """

    page: str
    name: str
    bound: tuple[object, ...] = ()
    steps: int = 300
    why: str = ""
    walks: str = ""
    row: str = ""

    @property
    def sql(self) -> str:
        """The statement, with one row if it takes rows."""
        return many(load(self.page)[self.name], self.row, 1)


HOT = (
    Hot("views", "due_levels"),
    Hot("views", "due", (LATER, 64), 12_000, "64 lanes of each priority"),
    Hot(
        "views",
        "waiting",
        ("http", "default", f"c{_WAITING}", f"root:c{_WAITING}", 100),
        400,
        "a lane sought by its name",
    ),
    Hot("views", "next_ready"),
    Hot("views", "next_trial"),
    Hot("rows", "message", (_MESSAGE,)),
    Hot("views", "lane_of_message", (_MESSAGE,)),
    Hot("views", "batch_of", (7, 5)),
    Hot("claims", "batch", (numbers((_MESSAGE,)),)),
    Hot("views", "turn_of_batch", (_MESSAGE,)),
    Hot("views", "replies_of_batch", (_MESSAGE,)),
    Hot("rows", "range", (_MESSAGE,)),
    Hot("views", "turn", (_MESSAGE,)),
    Hot("views", "placed", (numbers((_MESSAGE,)),)),
    Hot("lane_list", "line", ("http", "default", "c8", "root:c8")),
    Hot("views", "records", (_MESSAGE,)),
    Hot("context", "head", (7,)),
    Hot("context", "head_of", ("http", "default", "c8", "root:c8")),
    Hot("context", "summary", (7, 1)),
    Hot("context", "tail", (7, 0, 30), 1_500, "30 records"),
    Hot("context", "span", (7, 0, 30), 1_500, "30 records"),
    Hot("context", "used", (7, 0)),
    Hot("context", "past", (7,)),
    Hot("views", "last_turn", (True,), walks="by its id from the newest on; only turns that are open are passed"),
    Hot("views", "work", (None, 50), 1_500, "50 batches", walks="what is due, oldest first, as many as are asked for"),
    Hot("views", "work", ("c8", 50), 60_000, "5,000 are due", walks="all that is due: a backlog no turn leaves behind"),
    Hot("views", "find", (None, None, None, 20, None), 1_500, "20 messages", walks="by its id from the newest on"),
    Hot("views", "unseen", ("terminal", "c8", 100)),
    Hot("views", "answer", (_MESSAGE, "[]")),
    Hot("views", "tally", (), 40_000, "a row for every state and channel, and a few steps for each open batch"),
    Hot("views", "oldest", ("http",)),
    Hot("views", "tasks", (), 10_000, "1,000 wait"),
    Hot("views", "last_id"),
    Hot("views", "next_send", (_PUSHED,)),
    Hot("claims", "look", (LATER,)),
    Hot("claims", "asleep", (LATER,)),
    Hot("claims", "ready", (0, 64), 4_000, "64 batches"),
    Hot("claims", "lease", (numbers((2 * STEP + _WAITING,)), "leased", "me", LATER, False)),
    Hot("claims", "open_turns", (numbers((_MESSAGE,)),)),
    Hot("claims", "not_ready", (numbers((7,)),)),
    Hot("claims", "steps", (_MESSAGE,)),
    Hot("leases", "renew", (5 * STEP + QUEUED_FROM - 1, 1, LATER)),
    Hot("leases", "held", (5 * STEP + QUEUED_FROM - 1, 1)),
    Hot("leases", "expired", (LATER,), 600, "8 leases"),
    Hot("leases", "owned", ("me",), 600, "8 leases"),
    Hot("routing", "lane", ("http", "default", "c8", "root:c8")),
    Hot("routing", "stand", ("http", "default", f"c{_WAITING}", f"root:c{_WAITING}"), row="(?, ?, ?, ?)"),
    Hot("routing", "grow_batches", (2 * STEP + _WAITING, 3, 40, 10, 3 * STEP + _WAITING), row="(?, ?, ?, ?, ?)"),
    Hot("routing", "advance_lanes", (_WAITING, 5, 100, None, None, 0, None), row="(?, ?, ?, ?, ?, ?, ?)"),
    Hot("routing", "waiting", (_WAITING, 5)),
    Hot("routing", "clear_ready", (numbers((_WAITING,)),)),
    Hot("routing", "set_ready", (numbers((_WAITING,)),)),
    Hot("intake", "still_there", (_MESSAGE, b"0" * 16)),
    Hot("intake", "unkeyed", (), 600, "nothing is left to fold in"),
    Hot("intake", "last_id"),
    Hot("intake", "place", (_MESSAGE,)),
    Hot("intake", "target_lane", ("p5-9", "github", "default", "c9")),
    Hot("intake", "lately", ("github", "default", "c9", 50, 1_000), 2_000, "50 messages"),
    Hot("files", "due", (LATER, 64)),
    Hot("files", "next_due"),
    Hot("files", "of_messages", (numbers((_MESSAGE,)),)),
    Hot("files", "pieces", (_MESSAGE, 1)),
    Hot("pairing", "recent_times", ("github", "default", "c9", "bot", "loop", 200, 20), 6_000, "200 messages"),
    Hot("intake", "answers", ("github", "default", "c9", apsw.carray(("root:c9",)), 8), 600, "8 records"),
    Hot("turns", "held_turn", (_MESSAGE, 1)),
    Hot("turns", "commit_turn", (5 * STEP + QUEUED_FROM - 1, "committed", "m", 1, 1, None, NOW, "")),
    Hot("turns", "finish_batch", (5 * STEP + QUEUED_FROM - 1, "done", NOW)),
    Hot("turns", "speakers", (_MESSAGE,)),
    Hot("sessions", "current", (7,)),
    Hot("sessions", "unprocessed", (7, 0, 7, 6)),
    Hot("sessions", "ended_before", (7,)),
    Hot("sessions", "quiet", ("active", NOW, 100), 6_000, "100 lanes"),
    Hot("sessions", "never_quiet", ("active", NOW)),
    Hot("sessions", "quiet_since"),
    Hot("sessions", "sessions", (7, 10)),
    Hot("sessions", "mark_of", (7,)),
    Hot("turns", "origins", (numbers((_MESSAGE,)),)),
    Hot("collection", "due", (LATER,)),
    Hot("collection", "ripe", (7, 0, 7, 6)),
    Hot("collection", "held", (7, 1)),
    Hot("collection", "finding", (7,)),
    Hot("collection", "unread", (0, 100), 4_000, "100 sessions"),
    Hot("collection", "claimed_elsewhere", ("me",)),
    Hot("collection", "at_once", (NOW,)),
    Hot("collection", "extent", (7,)),
    Hot("collection", "utterances", (7, 0, 10, 30, False, 1, '["ask_for"]'), 1_500, "30 records"),
    Hot("sessions", "said_message", ("p5-9", "github", "default", "c9")),
    Hot("sessions", "said_reply", ("p5-9", "github", "default", "c9", "root:c9")),
    Hot("slots", "pending_of", (7, "ann")),
    Hot("slots", "open_of_lane", (7,)),
    Hot("slots", "open_slots", (7,)),
    Hot("slots", "slots", (7, 10)),
    Hot("receipts", "judged", (_MESSAGE, 7)),
    Hot("receipts", "shown", (_MESSAGE, 7)),
    Hot("receipts", "wrong_here", (7,)),
    Hot("receipts", "feedback_of_turn", (_MESSAGE,)),
    Hot("receipts", "reminded", (7,)),
    Hot("receipts", "shown_to", (7,)),
    Hot("views", "used", (_MESSAGE,)),
    Hot("standing", "personalities", ('["global", "person:owner"]',)),
    Hot("standing", "calibration", ("openai/x",)),
    Hot("standing", "calibrations"),
    Hot("views", "turn_before", (_MESSAGE,)),
    Hot("outbox", "next_replies", (LATER, _PUSHED, 8), 30_000, "1,000 may be sent now, and must be put in order"),
    Hot("outbox", "next_replies", (LATER, "[]", 8), 2_000, "8 replies; those that wait to be pulled cost nothing"),
    Hot("outbox", "take", (_MESSAGE, "sending", "me")),
    Hot("outbox", "sending_elsewhere", ("you",)),
    Hot("reply_parts", "parts", (_MESSAGE,)),
    Hot("reply_parts", "cut_short", (_MESSAGE, "pending", 1)),
    Hot("reply_parts", "empty", (_MESSAGE,)),
    Hot("outbox", "unknown", (LATER,), 1_000, "80 replies"),
    Hot("chronicle", "ahead", (_WAITING, 3)),
    Hot("chronicle", "turns", (_MESSAGE,)),
    Hot("chronicle", "moves", (_MESSAGE,)),
    Hot("drop", "waiting", (2 * STEP + _WAITING, True)),
    Hot("journal", "lines", (99_000, 128), 3_000, "128 lines"),
    Hot("journal", "overdue", ("slow", LATER)),
    Hot("journal", "ready", ("slow", LATER, 128), 6_000, "128 of 10,000 that are due"),
    Hot("journal", "ready", ("stuck", LATER, 128), 400_000, "10,000 behind one that is tried again"),
    Hot("journal", "take", (numbers((7,)), "processing", 1, LATER)),
    Hot("journal", "told", (numbers((99_001,)),)),
    Hot("journal", "held", (numbers((7,)), "slow", 1)),
    Hot("journal", "finish", (numbers((7,)), "done", LATER)),
    Hot("journal", "settle", (7, "pending", LATER, None, "no")),
    Hot("journal", "next_due", ("slow", -1), 81_000, "10,000 wait"),
    Hot("journal", "happened", ("99001", "turn.committed", 0)),
    Hot("journal", "newest_lines", (20,), 500),
    Hot("schedules", "due", (LATER, 64, True)),
    Hot("schedules", "next_due"),
    Hot("schedules", "ready", (LATER, 0, 16)),
    Hot("schedules", "heard", (64,)),
    Hot("schedules", "under_way", (7,)),
    Hot("schedules", "worked", (16,)),
    Hot("context", "posted", (7, 0, 0, 0, 10)),
    Hot("schedules", "latest"),
    Hot("tasks", "of", (numbers((400,)),)),
    Hot("tasks", "due", ("worker", LATER, 5), 500),
    Hot("tasks", "next_ready", ("worker",), 40_000, "1,000 wait"),
    Hot("tasks", "claim", (760_240, "running", "me", LATER, LATER), steps=350),  # its row is sealed anew
    Hot("tasks", "renew", (760_040, 1, LATER)),
    Hot("tasks", "held", (760_040, 1)),
    Hot("tasks", "freed", (360,)),
    Hot("tasks", "waiting", (360,)),
    Hot("tasks", "expired", (LATER,)),
    Hot("tasks", "unremembered", (50,)),
    Hot("tasks", "beside", ("http", "default", "c8", "root:c8", 20)),
    Hot("tasks", "untold", (500,)),
    Hot("tasks", "last_said", (7, "system")),
    Hot("tasks", "rounds", (7, 0)),
    Hot("tasks", "tell_back", (numbers((400,)), LATER)),
    Hot("tasks", "relay", (400, 7)),
    Hot("tasks", "messages_of", (400, 100)),
    Hot("outbox", "owner_lane"),
    Hot("schedules", "task_open", ("k19999",)),
    Hot("tasks", "answered_by", (_MESSAGE,)),
    Hot("tasks", "heard_outside", (_MESSAGE, "[]"), 400, "a session's records"),
    Hot("routing", "pending_task", ("k19999",)),
)


def keys(count: int) -> tuple[object]:
    """Keys that are there, bound as the writer binds them."""
    return (apsw.carray(tuple(b"%016d" % (STEP + n) for n in range(1, count + 1))),)
