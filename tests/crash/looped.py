"""A life of an instance in a crash loop; a fork server runs `main([PLAN])`, and the test kills it.

Model answers take 1 to 30 seconds, and trials have the lengths that the program uses, all times `Plan.scale`.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.crash.poisoned import nothing_left

import keepsaid.app.instance as instances
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.config.file import load
from keepsaid.config.settings import BufferConfig, TurnsConfig
from keepsaid.domain.batch import STABLE_MS, TrialTerms
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer
from keepsaid.pipeline.leasing import LeaseTerms, LifeTerms
from keepsaid.ports.model import Delta, ModelRequest

POISON = "mandrake"
TOOL = "grind"
"""A tool of an extension, which the model calls when it reads the poison."""

_ANSWER_S = (1.0, 30.0)
_ALONE_MS = 60_000
_PIECE_BYTES = 4 << 20
_ROOM_BYTES = 2 << 30
_TRIALS = TrialTerms()


@dataclass(frozen=True, slots=True)
class Plan:
    """One life: the messages it receives, as pairs of conversation and text, and what the poison does in it.

    `number` counts the lives before it. A life that drains ends well when all is answered; any other goes on until it
    is killed. `cgroup` is the directory of a control group that the process joins.
    """

    number: int
    messages: tuple[tuple[str, str], ...]
    scale: float
    strikes: str = "kill"
    drains: bool = False
    cgroup: str = ""

    @classmethod
    def read(cls, line: str) -> Plan:
        """Return the plan that a line of JSON holds."""
        plan = json.loads(line)
        return cls(**{**plan, "messages": tuple((room, text) for room, text in plan["messages"])})

    def line(self) -> str:
        """Return the plan as JSON."""
        return json.dumps(asdict(self))

    def terms(self) -> LifeTerms:
        """Return the terms of trials at the scale of this plan."""

        def scaled(duration_ms: int) -> int:
            return max(1, round(duration_ms * self.scale))

        trials = TrialTerms(
            after_ms=scaled(_TRIALS.after_ms),
            after_ms_max=scaled(_TRIALS.after_ms_max),
            beat_ms=scaled(_TRIALS.beat_ms),
            trial_beat_ms=scaled(_TRIALS.trial_beat_ms),
        )
        return LifeTerms(trials, stable_ms=scaled(STABLE_MS))


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _fill_memory() -> None:
    """Allocate and write memory until the kernel kills the process; fail at a limit that no control group set."""
    pieces: list[bytes] = []
    while len(pieces) * _PIECE_BYTES < _ROOM_BYTES:
        pieces.append(b"x" * _PIECE_BYTES)


_STRIKES: dict[str, Callable[[], None]] = {"kill": _kill, "memory": _fill_memory}
"""What the model does to the process when it reads the poison."""


class SlowModel:
    """A model that answers after a random time; one word ends the process, or is passed to a tool."""

    name = "slow"

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.instance: Instance | None = None

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """Return an answer that repeats what was said."""
        said = request.prompt.user
        if POISON in said and self._plan.strikes == "tool":
            return ModelAnswer("", calls=(ToolCall("call_1", TOOL, json.dumps({"word": POISON})),), model=self.name)
        if POISON in said:
            _STRIKES[self._plan.strikes]()
            raise AssertionError("it survived")
        assert self.instance is not None, "an instance calls the model"
        answer_s = Random(f"{self._plan.number} {said}").uniform(*_ANSWER_S)
        await self.instance.clock.wait(asyncio.Event(), max(1, round(1_000 * answer_s * self._plan.scale)))
        return ModelAnswer(f"you said {said}", model=self.name)


async def _live(plan: Plan) -> None:
    home = Home.at()
    config, _ = load(home.config_file)
    config = config.model_copy(
        update={"buffer": BufferConfig(window_ms=0), "turns": TurnsConfig(concurrent_max=4)},
    )
    model = SlowModel(plan)
    async with opened(home, config, model, Outside(life=plan.terms())) as instance:
        model.instance = instance
        await instance.start()
        for room, text in plan.messages:
            origin = Origin("http", "default", room, "ann", trust=Trust.KNOWN)
            await instance.receive(Inbound(origin, Content(text.encode(), text), ProviderMarks(f"{room}: {text}")))
        begun(home.data.parent).write_text(str(plan.number), "utf-8")
        await (nothing_left(instance) if plan.drains else asyncio.Event().wait())


def begun(home: Path) -> Path:
    """Return the file that holds the number of the last life that started and received its messages."""
    return home / "begun"


def main(arguments: list[str]) -> int:
    """Live one life."""
    (line,) = arguments
    plan = Plan.read(line)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if plan.cgroup:
        Path(plan.cgroup, "cgroup.procs").write_text(str(os.getpid()), "utf-8")
    alone_ms = max(1, round(_ALONE_MS * plan.scale))
    setattr(instances, "LeaseTerms", partial(LeaseTerms, alone_ms=alone_ms))  # noqa: B010 - not its to export
    asyncio.run(_live(plan))
    return 0
