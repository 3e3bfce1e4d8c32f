"""Tools for those who do work: the inbox by leases, tasks, schedules and the status (spec: doors, b)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keepsaid.domain.task import ENDED, OPEN
from keepsaid.interfaces.fields import bounded_field
from keepsaid.interfaces.mcp.tool import TEXT, Act, Ask, McpTool, arguments, bounded, returns
from keepsaid.interfaces.schema import between
from keepsaid.interfaces.shapes import Shape
from keepsaid.interfaces.task_shapes import SCHEDULE_FIELDS

LEASE_S, LEASE_S_MAX, WAIT_S_MAX, BATCHES_MAX = 60, 300, 20, 8
"""Seconds of a lease, and that a call waits; a client of the protocol gives up on an answer soon."""

_LEASE = {**TEXT, "description": "lease of a batch: bat_.../FENCE"}
_LEASE_TIME = between(1, LEASE_S_MAX, LEASE_S)
_ROWS = between(1, 100, 20)


def _call(name: str) -> Act:
    """The call of this name, with what the tool is given."""

    async def act(ask: Ask, given: Mapping[str, Any]) -> Shape:
        return await ask(name, given)

    return act


async def _pull(ask: Ask, given: Mapping[str, Any]) -> Shape:
    """Batches whole, however long: what was leased and not shown would wait for its lease to run out."""
    bounded_field(given, "wait_s", (0, WAIT_S_MAX), 0)
    limit = bounded_field(given, "limit", (1, BATCHES_MAX), 1)
    return await ask("pull", {**given, "limit": limit, "lease_s": _lease_s(given)})


async def _renew(ask: Ask, given: Mapping[str, Any]) -> Shape:
    return await ask("renew", {**given, "lease_s": _lease_s(given)})


def _lease_s(given: Mapping[str, Any]) -> int:
    return bounded_field(given, "lease_s", (1, LEASE_S_MAX), LEASE_S)


async def _tasks(ask: Ask, given: Mapping[str, Any]) -> Shape:
    return bounded("tasks", (await ask("tasks", given))["tasks"])


async def _schedules(ask: Ask, given: Mapping[str, Any]) -> Shape:
    return bounded("schedules", (await ask("schedules", given))["schedules"])


_SAID = {
    "text": TEXT,
    "conversation": {**TEXT, "description": "your name for this conversation"},
    "key": {**TEXT, "description": "names it, for a repeated call"},
    "name": {**TEXT, "description": "what its sender is called"},
    **dict.fromkeys(("topic", "provider_id", "reply_to"), TEXT),
}

INBOX = (
    McpTool(
        "inbox_put",
        "Send a message to keepsaid's own agent, in the name of this user. It is on disk when this returns. The same "
        "again under a key is stored once.",
        arguments(["text", "conversation"], **_SAID),
        returns(id="string", intake="string"),
        _call("put"),
        "idempotent",
    ),
    McpTool(
        "inbox_pull",
        "Lease batches of messages that wait for an answer, of all conversations. Answer each before its lease ends: "
        "inbox_done with the reply, or inbox_fail with the reason.",
        arguments(limit=between(1, BATCHES_MAX, 1), lease_s=_LEASE_TIME, wait_s=between(0, WAIT_S_MAX, 0)),
        returns(batches="array"),
        _pull,
        "act",
    ),
    McpTool(
        "inbox_renew",
        "Hold a lease for longer, from now on.",
        arguments(["lease"], lease=_LEASE, lease_s=_LEASE_TIME),
        returns(lease_s="integer"),
        _renew,
        "idempotent",
    ),
    McpTool(
        "inbox_done",
        "Settle a leased batch, with the reply to its conversation; without one nothing is sent.",
        arguments(["lease"], lease=_LEASE, reply=TEXT, worker=TEXT),
        returns(state="string", duplicate="boolean"),
        _call("done"),
        "idempotent",
    ),
    McpTool(
        "inbox_fail",
        "Give a leased batch back because it could not be answered. It comes again, and is dead after the third time.",
        arguments(["lease"], lease=_LEASE, reason=TEXT),
        returns(state="string"),
        _call("fail"),
        "idempotent",
    ),
    McpTool(
        "inbox_release",
        "Give a leased batch back without charging it an attempt, such as when you stop working.",
        arguments(["lease"], lease=_LEASE),
        returns(state="string"),
        _call("release"),
        "idempotent",
    ),
)
"""Tools of the inbox: `inbox_put` for keys with the scope talk, the others for those with operate."""

OWNER = (
    McpTool(
        "task_ls",
        "List tasks, newest first.",
        arguments(state={**TEXT, "enum": [*OPEN, *ENDED]}, key=TEXT, limit=_ROWS),
        returns(tasks="array"),
        _tasks,
        "read",
    ),
    McpTool(
        "task_run",
        "Make a pending task due now.",
        arguments(["id"], id={**TEXT, "description": "tsk_..."}),
        returns(done="boolean"),
        _call("run_task"),
        "idempotent",
    ),
    McpTool(
        "task_approve",
        "Continue a task that waits for review, once the user agrees. `result` is that of its unfinished call.",
        arguments(["id"], id={**TEXT, "description": "tsk_..."}, result=TEXT),
        returns(done="boolean"),
        _call("approve_task"),
        "act",
    ),
    McpTool(
        "schedule_ls",
        "List schedules that are not over.",
        arguments(after={**TEXT, "description": "sch_..., the last one of the former list"}, limit=_ROWS),
        returns(schedules="array"),
        _schedules,
        "read",
    ),
    McpTool(
        "schedule_add",
        "Add a schedule: one of cron, every_s and at; one of say, ask, run and task; `to` where it is posted.",
        arguments(**SCHEDULE_FIELDS["properties"]),
        returns(id="string", state="string", next_at="string"),
        _call("add_schedule"),
        "act",
    ),
    McpTool(
        "status",
        "What waits, what was answered, what is remembered, and what needs attention.",
        arguments(),
        returns(sentence="string", attention="array"),
        _call("status"),
        "read",
    ),
)
"""Tools of the operator alone: no scope of a key opens them."""
