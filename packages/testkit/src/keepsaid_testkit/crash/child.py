"""The child: what a life is given before it starts: its points are armed, its tools are real, its fault is built in.

`python -m keepsaid_testkit.crash.child --program MODULE:FUNCTION --began S --order JSON` lives one life in a process
of its own, imports and all; `began` is the monotonic clock when it was started.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any

import keepsaid.app.agent as agents
import keepsaid.app.builtin.parts as built_in
import keepsaid.app.instance as opened
from keepsaid.adapters.sqlite import files
from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.app import opening, work
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.work import TaskRunnersDeps
from keepsaid.domain.batch import TrialTerms
from keepsaid.domain.fetching import PIECE_BYTES
from keepsaid.domain.graph import Mention
from keepsaid.domain.memory import OWNER, NewMemory, Used
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import ClaimedBatch, ToolClass
from keepsaid.domain.turn_files import MadeFile, WithFiles
from keepsaid.domain.visibility import ShareMemory, ShareReach
from keepsaid.engine.supervisor import Recovered
from keepsaid.engine.tasks import TaskLimits
from keepsaid.pipeline.answering import AgentDeps
from keepsaid.pipeline.leasing import LeaseTerms, LifeTerms
from keepsaid.ports.model import Tool
from keepsaid.ports.runtime import arm, point
from keepsaid_testkit.crash.faults import FAULTS, REPEAT_UNSAFE, Wraps
from keepsaid_testkit.crash.leading import EXPIRING, STABLE, TEACHING, ask_too_late, lead, lead_first, leads_to
from keepsaid_testkit.crash.learning import exercise_learning
from keepsaid_testkit.crash.order import Order, Program, program_of, tell
from keepsaid_testkit.crash.schedules import exercise_schedules
from keepsaid_testkit.crash.subscribers import subscribe_all, subscribe_briefly
from keepsaid_testkit.crash.working import MINE, keep_busy, record_talk
from keepsaid_testkit.power.full import lay

_RENEW_MS = 100
"""A lease is renewed often, so that a kill can fall on it."""

_LIFE = LifeTerms(TrialTerms(after_ms=500), stable_ms=2_000)
"""Lives are brief, and so is what a trial waits for."""

_SOON_STABLE = LifeTerms(_LIFE.trials, stable_ms=50)
_LEADING: set[asyncio.Task[None]] = set()
"""What leads to points goes on beside everything else; here it is kept from being forgotten."""

_KEYED: Mapping[str, Json] = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
_STRANGERS = ("nowhere:default:1", "nowhere:default:2")
_CLAIMED = "commit.ClaimBatches.after"

Start = Callable[..., Awaitable[Recovered]]
Keep = Callable[[SqliteMemories, Sequence[NewMemory], int, Sequence[Used]], Awaitable[tuple[int, ...]]]


def lived(program: Program, order: Order, began: float) -> int:
    """Live a life in this process, which is to end with it; returns its exit code, if it comes to that."""
    events = os.dup(1)
    for source, flags, target in ((os.devnull, os.O_RDONLY, (0,)), (order.log, os.O_WRONLY | os.O_APPEND, (1, 2))):
        file = os.open(source, flags | os.O_CREAT, 0o600)
        for number in target:
            os.dup2(file, number)
        os.close(file)
    os.environ["KEEPSAID_HOME"] = order.home
    prepare(order, events, began)
    code = program(list(order.arguments))
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def prepare(order: Order, events: int, began: float) -> None:
    """Arm the points and wrap the ports; `events` is the file for reports, `began` when the life began."""
    arm(_armed(order, events, began))
    signal.signal(signal.SIGUSR2, _tell_what_holds)
    faulthandler.register(signal.SIGUSR2, chain=True)
    _replace(opened, "LeaseTerms", partial(LeaseTerms, lease_ms=order.lease_ms, renew_ms=_RENEW_MS))
    life = _SOON_STABLE if order.aims and leads_to(order.aims, STABLE) else _LIFE
    _replace(opening, "Outside", partial(Outside, life=life))
    if order.full:
        lay(Path(order.full))
    kinds = {"once": ToolClass.UNSAFE, "same": ToolClass.IDEMPOTENT, MINE: ToolClass.UNSAFE}
    if order.fault == REPEAT_UNSAFE:
        kinds["once"] = ToolClass.IDEMPOTENT
    tools = [_marking(name, kind, Path(order.effects)) for name, kind in kinds.items()]
    _replace(agents, "AgentDeps", partial(_agent_deps, tools))
    _replace(opened, "TaskRunnersDeps", partial(_site, tools))
    _replace(work, "TaskLimits", partial(TaskLimits, lease_ms=order.lease_ms, renew_ms=_RENEW_MS))
    wraps = FAULTS[order.fault] if order.fault else Wraps()
    _replace(files, "open_stores", wraps.stores(_found(files, "open_stores")))
    _replace(built_in, "channels_of", wraps.channels(_found(built_in, "channels_of")))
    if leads_to(order.aims, TEACHING):
        _replace(SqliteMemories, "keep", _mentioning(SqliteMemories.keep))
    _replace(opened.Instance, "start", _visited(opened.Instance.start, order))


def _tell_what_holds(*_: object) -> None:
    """Write to the log where every coroutine is; the threads stand there already."""
    for task in asyncio.all_tasks():
        task.print_stack(limit=8, file=sys.stderr)
    sys.stderr.flush()


def _armed(order: Order, events: int, began: float) -> Callable[[str], None]:
    left, told = dict(order.aims), False

    def pass_by(name: str) -> None:
        nonlocal told
        if name == _CLAIMED and not told:
            told = True
            tell({"claimed": round(1_000 * (monotonic() - began), 1)}, events)
        if name in left:
            left[name] -= 1
            if not left[name]:
                tell({"reached": name}, events)
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_by


def _found(place: ModuleType | type, name: str) -> Any:
    return getattr(place, name)


def _replace(place: ModuleType | type, name: str, value: object) -> None:
    """Let a module or class have something else under a name; fails when it has no such name any more."""
    _found(place, name)
    setattr(place, name, value)


def _mentioning(keep: Keep) -> Keep:
    """Each memory that is kept mentions a thing of its own: that is written too, and leads from none to another.

    The first mentions a second thing, which is merged with its own. Two strangers are joined and split, and each memory
    is shared with the scope it already has, and learned from.
    """

    async def kept(
        store: SqliteMemories, memories: Sequence[NewMemory], at: int, used: Sequence[Used] = ()
    ) -> tuple[int, ...]:
        ids = await keep(store, memories, at, used)
        await store.graph.relate([], [Mention(id_, f"thing:{id_}", f"thing {id_}") for id_ in ids if id_], at)
        await store.people.join(_STRANGERS, OWNER, at)
        await store.people.split(_STRANGERS[0])
        for id_ in ids[:1]:
            await store.graph.relate([], [Mention(id_, f"thing:{id_}:other", f"other {id_}")], at)
            await store.entities.merge(f"thing:{id_}", f"thing:{id_}:other")
            await store.sharing.share(ShareMemory(id_, ShareReach.CONVERSATION, OWNER, "so already", at))
            await exercise_learning(store, id_, at)
        return ids

    return kept


def _visited(start: Start, order: Order) -> Start:
    """Whoever starts has subscribers, keeps time and is kept busy; or does what leads to where it is to die."""

    async def started(instance: Instance, **how: bool) -> Recovered:
        if leads_to(order.aims, EXPIRING):
            await ask_too_late(instance)
        recovered = await start(instance, **how)
        await subscribe_all(instance, Path(order.effects))
        if order.aims:
            await lead_first(instance, order.aims)
            _LEADING.add(asyncio.create_task(lead(instance, order.aims), name="leading"))
        else:
            await subscribe_briefly(instance)
            await exercise_schedules(instance)
            await record_talk(instance)
            await keep_busy(instance)
        return recovered

    return started


def _agent_deps(also: Sequence[Tool], *parts: Any) -> AgentDeps:
    """What thinks, with tools beside its own."""
    model, reminder, identity, tools, *more_parts = parts

    def more(claimed: ClaimedBatch) -> Sequence[Tool]:
        return (*tools(claimed), *also)

    return AgentDeps(model, reminder, identity, more, *more_parts)


def _site(also: Sequence[Tool], *parts: Any) -> TaskRunnersDeps:
    """Where workers work, with tools beside theirs."""
    home, config, store, memories, redactor, model, tools, *more_parts = parts
    return TaskRunnersDeps(home, config, store, memories, redactor, model, lambda: (*tools(), *also), *more_parts)


def _marking(name: str, kind: ToolClass, effects: Path) -> Tool:
    """A tool whose effect is a line in a file, on disk before it returns; a life can die between, at `effect.NAME`."""

    async def run(arguments: dict[str, Json]) -> str:
        line = json.dumps({"tool": name, "key": arguments["key"]}).encode() + b"\n"
        file = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.fsync(file)
        os.close(file)
        point(f"effect.{name}")
        if kind is not ToolClass.IDEMPOTENT:
            return f"{name} is done"
        # its file is made again when the call is, and has two pieces
        made = MadeFile(f"{name}.bin", "", bytes(PIECE_BYTES) + b"the rest")
        return WithFiles(f"{name} is done", Trust.EXTERNAL, (made,))

    serves = Trust.OWNER if name == MINE else Trust.EXTERNAL
    return Tool(name, f"Leave a mark, {name}.", _KEYED, run, kind, serves=serves)


def main(arguments: Sequence[str] | None = None) -> int:
    """Live one life."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid_testkit.crash.child", description=main.__doc__)
    parser.add_argument("--program", required=True, help="what it runs: MODULE:FUNCTION")
    parser.add_argument("--began", type=float, required=True, help="the monotonic clock when it was started")
    parser.add_argument("--order", type=Order.read, required=True, help="the order, as JSON")
    options = parser.parse_args(arguments)
    return lived(program_of(options.program), options.order, options.began)


if __name__ == "__main__":
    raise SystemExit(main())
