"""No move is possible but those of the design, written out here by hand (section 3 of the design)."""

from __future__ import annotations

from itertools import product

import pytest

from keepsaid.domain.states import TABLES, IllegalMove, message_state, move

DESIGN: dict[str, dict[str, set[str]]] = {
    "batch": {
        "queued": {"leased", "dropped", "done"},
        "leased": {"done", "queued", "review", "dead"},
        "dropped": {"queued"},
        "review": {"queued", "done", "dead"},
        "dead": {"queued"},
    },
    "turn": {"open": {"committed", "abandoned"}},
    "step": {"started": {"finished"}},
    "task": {
        "blocked": {"pending", "failed", "cancelled"},
        "pending": {"running", "cancelled"},
        "running": {"completed", "failed", "cancelled", "needs_review", "pending"},
        "needs_review": {"pending", "failed", "cancelled"},
    },
    "reply": {
        "pending": {"sending"},
        "sending": {"sent", "pending", "unknown", "dead", "not_deliverable"},
        "unknown": {"pending", "dead"},
        "dead": {"pending"},
    },
    "delivery": {
        "pending": {"processing"},
        "processing": {"done", "pending", "dead"},
        "dead": {"pending", "dismissed"},
    },
    "session": {"active": {"sleeping", "ended"}, "sleeping": {"active", "ended"}},
    "life": {},
    "part": {},
    "pairing": {},
    "file": {},
    "collection": {},
    "forgetting": {},
    "slot": {},
    "feedback": {},
    "schedule": {},
    "run": {},
    "output": {},
    "memory": {
        "active": {"superseded", "archived", "forgotten"},
        "superseded": {"active", "forgotten"},
        "archived": {"active", "forgotten"},
        "forgotten": {"active"},
    },
}

ADDED: dict[str, dict[str, set[str]]] = {
    "part": {"pending": {"sending"}, "sending": {"sent", "pending"}},
    "pairing": {"pending": {"known", "owner"}, "known": {"owner"}, "owner": {"known"}},
    "file": {"waiting": {"kept", "left"}, "left": {"waiting"}},
    "schedule": {
        "active": {"paused", "disabled", "done", "cancelled"},
        "paused": {"active", "cancelled"},
        "disabled": {"active", "cancelled"},
        "done": {"cancelled"},
    },
    "run": {
        "due": {"running", "executed", "failed", "skipped"},
        "running": {"executed", "failed", "interrupted", "due"},
    },
    "output": {
        "none": {"asked", "waiting"},
        "asked": {"waiting", "silent", "delivered", "undelivered"},
        "waiting": {"delivered", "undelivered"},
    },
    "life": {"running": {"stopped", "died", "died_in_trial"}},
    "slot": {"open": {"filled", "cleared", "expired"}},
    "feedback": {"wrong": {"withdrawn"}, "withdrawn": {"wrong"}},
    "memory": {
        "active": {"merged"},
        "superseded": {"merged"},
        "archived": {"merged"},
        "merged": {"forgotten", "archived"},
    },
    "collection": {
        "clean": {"marked"},
        "marked": {"marked", "claimed"},
        "claimed": {"claimed", "marked", "clean", "parked"},
        "parked": {"parked", "marked"},
    },
    "forgetting": {
        "requested": {"hidden"},
        "hidden": {"erased"},
        "erased": {"scrubbed"},
        "scrubbed": {"checkpointed"},
        "checkpointed": {"done"},
        "done": {"restoring"},
        "restoring": {"undone"},
    },
    "batch": {"queued": {"review"}, "leased": {"dropped"}},
    "reply": {"pending": {"sent", "not_deliverable"}, "dead": {"not_deliverable"}},
}
"""Beyond the words of the design: a batch that joined a turn in doubt waits for a person with it; a batch that is being
answered is dropped when a person stops it; a pulled reply is
shown without being sent, or cannot be delivered at all; a dead one is accepted as such by a person.
And questions that wait for an answer, what people say of memories, one that another stands for, the reading of
marked sessions, schedules with their runs and what is heard of these, lives of the process, parts of replies, and who
may talk."""

ENDS = {
    "batch": {"done"},
    "life": {"stopped", "died", "died_in_trial"},
    "turn": {"committed", "abandoned"},
    "step": {"finished"},
    "task": {"completed", "failed", "cancelled"},
    "reply": {"sent", "not_deliverable"},
    "part": {"sent"},
    "pairing": set[str](),
    "file": {"kept"},
    "delivery": {"done", "dismissed"},
    "session": {"ended"},
    "collection": set[str](),
    "forgetting": {"undone"},
    "slot": {"filled", "cleared", "expired"},
    "feedback": set[str](),
    "schedule": {"cancelled"},
    "run": {"executed", "failed", "skipped", "interrupted"},
    "output": {"silent", "delivered", "undelivered"},
    "memory": set[str](),
}

VERBS = {
    "batch": {
        ("queued", "claim"): "leased",
        ("queued", "drop"): "dropped",
        ("queued", "spawn"): "done",
        ("queued", "steer"): "done",
        ("queued", "park"): "review",
        ("leased", "commit"): "done",
        ("leased", "release"): "queued",
        ("leased", "retry"): "queued",
        ("leased", "expire"): "queued",
        ("leased", "interrupt"): "queued",
        ("leased", "park"): "review",
        ("leased", "bury"): "dead",
        ("leased", "drop"): "dropped",
        ("dropped", "requeue"): "queued",
        ("review", "requeue"): "queued",
        ("dead", "requeue"): "queued",
        ("review", "approve"): "done",
        ("review", "bury"): "dead",
    },
    "turn": {("open", "commit"): "committed", ("open", "abandon"): "abandoned"},
    "step": {("started", "finish"): "finished"},
    "task": {
        ("running", "release"): "pending",
        ("running", "expire"): "pending",
        ("blocked", "unblock"): "pending",
        ("blocked", "cascade"): "failed",
        ("blocked", "cancel"): "cancelled",
        ("pending", "start"): "running",
        ("pending", "cancel"): "cancelled",
        ("running", "complete"): "completed",
        ("running", "fail"): "failed",
        ("running", "cancel"): "cancelled",
        ("running", "park"): "needs_review",
        ("running", "retry"): "pending",
        ("needs_review", "approve"): "pending",
        ("needs_review", "fail"): "failed",
        ("needs_review", "cancel"): "cancelled",
    },
    "reply": {
        ("pending", "take"): "sending",
        ("pending", "refuse"): "not_deliverable",
        ("pending", "show"): "sent",
        ("sending", "confirm"): "sent",
        ("sending", "retry"): "pending",
        ("sending", "doubt"): "unknown",
        ("sending", "bury"): "dead",
        ("sending", "refuse"): "not_deliverable",
        ("unknown", "resend"): "pending",
        ("unknown", "bury"): "dead",
        ("dead", "requeue"): "pending",
        ("dead", "refuse"): "not_deliverable",
    },
    "part": {
        ("pending", "take"): "sending",
        ("sending", "confirm"): "sent",
        ("sending", "retry"): "pending",
        ("sending", "doubt"): "pending",
    },
    "delivery": {
        ("pending", "take"): "processing",
        ("processing", "finish"): "done",
        ("processing", "retry"): "pending",
        ("processing", "bury"): "dead",
        ("dead", "requeue"): "pending",
        ("dead", "dismiss"): "dismissed",
    },
    "pairing": {
        ("pending", "admit"): "known",
        ("pending", "own"): "owner",
        ("known", "own"): "owner",
        ("owner", "admit"): "known",
    },
    "file": {("waiting", "keep"): "kept", ("waiting", "leave"): "left", ("left", "want"): "waiting"},
    "session": {
        ("active", "sleep"): "sleeping",
        ("sleeping", "wake"): "active",
        ("active", "end"): "ended",
        ("sleeping", "end"): "ended",
    },
    "collection": {
        ("clean", "mark"): "marked",
        ("marked", "mark"): "marked",
        ("claimed", "mark"): "claimed",
        ("parked", "mark"): "parked",
        ("marked", "claim"): "claimed",
        ("claimed", "claim"): "claimed",
        ("marked", "wait"): "marked",
        ("claimed", "wait"): "marked",
        ("claimed", "leave"): "marked",
        ("claimed", "finish"): "clean",
        ("claimed", "fail"): "marked",
        ("claimed", "park"): "parked",
        ("parked", "requeue"): "marked",
    },
    "life": {("running", "stop"): "stopped", ("running", "die"): "died", ("running", "die_in_trial"): "died_in_trial"},
    "forgetting": {
        ("requested", "hide"): "hidden",
        ("hidden", "erase"): "erased",
        ("erased", "scrub"): "scrubbed",
        ("scrubbed", "checkpoint"): "checkpointed",
        ("checkpointed", "finish"): "done",
        ("done", "undo"): "restoring",
        ("restoring", "restore"): "undone",
    },
    "schedule": {
        ("active", "pause"): "paused",
        ("paused", "resume"): "active",
        ("disabled", "resume"): "active",
        ("active", "disable"): "disabled",
        ("active", "finish"): "done",
        ("active", "cancel"): "cancelled",
        ("paused", "cancel"): "cancelled",
        ("disabled", "cancel"): "cancelled",
        ("done", "cancel"): "cancelled",
    },
    "run": {
        ("due", "begin"): "running",
        ("due", "execute"): "executed",
        ("due", "fail"): "failed",
        ("due", "skip"): "skipped",
        ("running", "execute"): "executed",
        ("running", "fail"): "failed",
        ("running", "interrupt"): "interrupted",
        ("running", "release"): "due",
    },
    "output": {
        ("none", "ask"): "asked",
        ("none", "post"): "waiting",
        ("asked", "answer"): "waiting",
        ("asked", "end"): "silent",
        ("asked", "deliver"): "delivered",
        ("asked", "lose"): "undelivered",
        ("waiting", "deliver"): "delivered",
        ("waiting", "lose"): "undelivered",
    },
    "feedback": {("wrong", "withdraw"): "withdrawn", ("withdrawn", "mark"): "wrong"},
    "slot": {("open", "fill"): "filled", ("open", "clear"): "cleared", ("open", "expire"): "expired"},
    "memory": {
        ("active", "supersede"): "superseded",
        ("superseded", "reopen"): "active",
        ("active", "archive"): "archived",
        ("archived", "restore"): "active",
        ("active", "forget"): "forgotten",
        ("superseded", "forget"): "forgotten",
        ("archived", "forget"): "forgotten",
        ("active", "merge"): "merged",
        ("superseded", "merge"): "merged",
        ("archived", "merge"): "merged",
        ("merged", "forget"): "forgotten",
        ("merged", "part"): "archived",
        ("forgotten", "undo"): "active",
    },
}

EVERY_VERB = [*sorted({verb for table in VERBS.values() for _, verb in table}), "", "delete", "claim "]
EVERY_STATE = [*sorted({state for table in DESIGN.values() for state in table}.union(*ENDS.values())), "", "new"]


def pairs(moves: dict[str, dict[str, set[str]]], kind: str) -> set[tuple[str, str]]:
    return {(before, after) for before, ends in moves.get(kind, {}).items() for after in ends}


def test_every_kind_has_its_table() -> None:
    assert set(TABLES) == set(DESIGN) == set(VERBS) == set(ENDS)


@pytest.mark.parametrize("kind", DESIGN)
def test_the_table_is_the_design(kind: str) -> None:
    moves = {(before, after) for (before, _), after in TABLES[kind].items()}
    assert moves == pairs(DESIGN, kind) | pairs(ADDED, kind)
    assert not pairs(DESIGN, kind) & pairs(ADDED, kind)


@pytest.mark.parametrize("kind", DESIGN)
def test_each_state_is_left_or_is_an_end(kind: str) -> None:
    left = {before for before, _ in TABLES[kind]}
    reached = set(TABLES[kind].values())
    assert reached - left == ENDS[kind]


@pytest.mark.parametrize("kind", VERBS)
def test_each_verb_leads_where_it_should(kind: str) -> None:
    assert dict(TABLES[kind]) == VERBS[kind]
    for (before, verb), after in VERBS[kind].items():
        assert move(kind, before, verb) == after


@pytest.mark.parametrize("kind", VERBS)
def test_no_other_move_is_possible(kind: str) -> None:
    for state, verb in product(EVERY_STATE, EVERY_VERB):
        if (state, verb) in VERBS[kind]:
            continue
        with pytest.raises(IllegalMove) as refused:
            move(kind, state, verb)
        assert (refused.value.kind, refused.value.state, refused.value.verb) == (kind, state, verb)
        assert str(refused.value) == f"a {kind} that is {state} cannot {verb}"


def test_the_tables_cannot_be_changed() -> None:
    for table in (TABLES, *TABLES.values()):
        with pytest.raises(TypeError):
            table["x"] = "y"  # type: ignore[index]


def test_a_message_has_the_state_of_its_batch() -> None:
    states = {state: message_state(state) for state in ("queued", "leased", "done", "dropped", "review", "dead")}
    assert states == {
        "queued": "batched",
        "leased": "batched",
        "done": "done",
        "dropped": "dropped",
        "review": "review",
        "dead": "dead",
    }
    assert message_state(None) == "received"
