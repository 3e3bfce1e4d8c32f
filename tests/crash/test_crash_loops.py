"""Crash loops with real processes: no innocent message dies, and a message that ends the process is given up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from time import monotonic
from typing import NamedTuple

import pytest
from tests.crash.cgroups import memory_limited
from tests.crash.looped import POISON, TOOL, Plan, begun
from tests.crash.rows import asked
from tests.figures import Figures
from tests.unit.extension_cast import put_folder

from keepsaid.domain.ids import show
from keepsaid_testkit.crash.fork import Nursery, nursery
from keepsaid_testkit.crash.order import Order
from keepsaid_testkit.crash.process import environ

_ROOMS = tuple(f"innocent {n}" for n in range(4))
_VICTIM = "victim"
_POISONED = f"say {POISON}"
_SCALE = 0.02
_LOOK_S = 0.005
_LIFE_S = 580.0
_STARTING_S = 0.05
_LATEST = 6
"""So many of the latest messages are sent again to the next life, which may not have received them before a kill."""

_LIVES_MAX = 60
"""So many lives are killed at most until a message is in flight at two deaths in a row."""

_DEATHS_MAX = 12
"""How often a poison may end the process once nothing else does: ADR 32 states at most 9 trials, after 2 deaths."""

_MEMORY_BYTES = 192 << 20
_FOLDER = "brittle"

_MESSAGES = """
SELECT lane.conversation, message.text, batch.state,
  (SELECT count(*) FROM reply WHERE reply.batch_id = batch.id AND NOT notice AND instr(reply.text, message.text)),
  (SELECT count(*) FROM reply WHERE reply.batch_id = batch.id),
  (SELECT count(*) FROM transcript WHERE role = 'user' AND ref = 'message:' || message.id)
FROM message JOIN lane ON lane.id = message.lane_id
LEFT JOIN batch ON batch.lane_id = message.lane_id AND number BETWEEN first AND last
WHERE event NOT IN ('recorded', 'answered') ORDER BY message.id
"""
_STATES = "SELECT state, count(*) FROM batch GROUP BY state"
_CHARGED = "SELECT id FROM batch WHERE attempts > 0 OR charges > 0"
_SUSPECTS = "SELECT count(*) FROM batch WHERE crashes >= 2"
_IN_FLIGHT = "SELECT count(*) FROM batch WHERE crashes > 0 OR state = 'leased'"
_TRIALS = "SELECT count(*) FROM life WHERE state = 'died_in_trial'"
_DEAD = "SELECT id, attempts, charges, crashes, trial_deaths FROM batch WHERE state = 'dead'"
_NOTICES = "SELECT batch_id, conversation, text FROM reply WHERE notice"


class Killing(NamedTuple):
    """A number of lives, each killed 0 to `life_s` seconds after its start, at the scale of the play."""

    life_s: float
    lives: int


LOOPS = {"young": Killing(5, 10), "older": Killing(40, 6)}
"""Lives too short for any trial, and lives in which trials begin and are cut off."""


class Play:
    """One life after another on one home. Each receives messages of several conversations."""

    def __init__(self, frail: Nursery, folder: Path, scale: float = _SCALE, seed: int = 1) -> None:
        self.home = folder / "home"
        self.plan = Plan(0, (), scale)
        self.messages: list[tuple[str, str]] = []
        self._frail = frail
        self._log = folder / "lives.log"
        self._chance = Random(seed)

    def live(self, plan: Plan, kill_s: float | None = None) -> int:
        """Run one life to its end, and return its exit code; it is killed `kill_s` seconds after its start."""
        order = Order((plan.line(),), str(self.home), str(self._log), str(self._log))
        self.plan = replace(self.plan, number=self.plan.number + 1)
        life = self._frail.fork(order)
        deadline = monotonic() + _LIFE_S
        if kill_s is not None and self._chance.random() < 1 / 8:
            deadline = monotonic() + self._chance.uniform(0, _STARTING_S)
        started = False
        while monotonic() < deadline:
            if kill_s is not None and not started and self._has_begun(plan.number):
                started, deadline = True, monotonic() + kill_s
            try:
                return life.wait(max(0.0, min(_LOOK_S, deadline - monotonic())))
            except subprocess.TimeoutExpired:
                continue
        life.kill()
        assert kill_s is not None, f"it takes too long: {self._log.read_text('utf-8')}"
        return life.wait()

    def kill(self, killing: Killing) -> None:
        """Run lives that are killed, each with one message more."""
        for _ in range(killing.lives):
            room = self._chance.choice(_ROOMS)
            self.messages.append((room, f"{room}, life {self.plan.number}."))
            plan = replace(self.plan, messages=tuple(self.messages[-_LATEST:]))
            code = self.live(plan, self._chance.uniform(0, killing.life_s) * self.plan.scale)
            assert code == -9, self._log.read_text("utf-8")

    def drain(self) -> int:
        """Run lives that nobody kills until one answers all and ends well; returns how many died before."""
        deaths = 0
        while (code := self.live(replace(self.plan, messages=tuple(self.messages), drains=True))) != 0:
            deaths += 1
            assert code in (-9, -6), self._log.read_text("utf-8")
            assert deaths <= _DEATHS_MAX, self.asked(_STATES)
        return deaths

    def _has_begun(self, number: int) -> bool:
        file = begun(self.home)
        return file.exists() and file.read_text("utf-8") == str(number)

    def asked(self, statement: str) -> list[tuple[object, ...]]:
        """Return the rows of a statement on the operational store."""
        return asked(self.home / "data" / "buffer.db", statement)

    def asked_count(self, statement: str) -> int:
        """Return the number that a statement reads."""
        [(count,)] = self.asked(statement)
        assert isinstance(count, int)
        return count


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A fork server for the lives of this file."""
    log = tmp_path_factory.mktemp("loops") / "forks.log"
    with log.open("ab") as errors, nursery("tests.crash.looped:main", (), errors) as opened:
        yield opened


def _all_answered(play: Play) -> None:
    """Every innocent message has one reply that repeats it, nothing else was said, and it stands in one transcript."""
    rows = [row for row in play.asked(_MESSAGES) if POISON not in str(row[1])]
    assert sorted((str(room), str(text)) for room, text, *_ in rows) == sorted(
        message for message in play.messages if POISON not in message[1]
    )
    assert [row for row in rows if row[2:] != ("done", 1, 1, 1)] == []


def _one_dead(play: Play) -> tuple[int, int]:
    """The poison alone is dead, by three charges, and its notice is true; returns its deaths and fatal trials."""
    assert [row[:3] for row in play.asked(_MESSAGES) if POISON in str(row[1])] == [(_VICTIM, _POISONED, "dead")]
    [(batch_id, attempts, charges, crashes, trial_deaths)] = play.asked(_DEAD)
    assert isinstance(batch_id, int)
    assert isinstance(crashes, int)
    assert isinstance(trial_deaths, int)
    assert isinstance(charges, int)
    assert attempts == charges >= 3
    [(noticed, room, text)] = play.asked(_NOTICES)
    assert (noticed, room) == (batch_id, _VICTIM)
    assert show("batch", batch_id) in str(text)
    assert f"{crashes} times" in str(text)
    return crashes, trial_deaths


def _innocents(play: Play, killing: Killing) -> dict[str, object]:
    play.messages += [(room, f"{room} begins.") for room in _ROOMS]
    play.kill(killing)
    while not play.asked_count(_SUSPECTS):
        assert play.plan.number < _LIVES_MAX, "no message was in flight at two deaths in a row"
        play.kill(killing._replace(lives=1))
    suspects, trials = play.asked_count(_SUSPECTS), play.asked_count(_TRIALS)
    assert play.drain() == 0
    return {"suspects": suspects, "fatal_trials": trials}


@pytest.mark.parametrize("loop", LOOPS)
def test_no_innocent_message_dies_in_a_real_crash_loop(frail: Nursery, tmp_path: Path, loop: str) -> None:
    play = Play(frail, tmp_path)
    _innocents(play, LOOPS[loop])
    assert play.asked(_NOTICES) == []
    _all_answered(play)


def _poisoned(play: Play, killing: Killing, strikes: str = "kill") -> int:
    play.plan = replace(play.plan, strikes=strikes)
    play.messages.append((_VICTIM, _POISONED))
    play.messages += [(room, f"{room} begins.") for room in _ROOMS]
    play.kill(killing)
    play.messages.append((_VICTIM, "And then?"))
    return play.drain()


def test_a_poison_dies_in_a_real_crash_loop_and_nobody_else_pays(frail: Nursery, tmp_path: Path) -> None:
    play, killing = Play(frail, tmp_path, scale=0.04), Killing(5, 4)
    deaths = _poisoned(play, killing)
    _, trial_deaths = _one_dead(play)
    # on a busy machine a life that is killed may come to a trial, too
    assert 3 <= trial_deaths <= play.asked_count(_TRIALS) <= killing.lives + deaths
    _all_answered(play)


def test_a_message_that_fills_the_memory_dies_and_the_others_are_answered(frail: Nursery, tmp_path: Path) -> None:
    with memory_limited(_MEMORY_BYTES) as group:
        if group is None:
            pytest.skip("no control group with a limit of memory can be made here (not root, or not delegated)")
        play = Play(frail, tmp_path, scale=0.04)
        play.plan = replace(play.plan, cgroup=str(group))
        deaths = _poisoned(play, Killing(5, 0), "memory")
        _, trial_deaths = _one_dead(play)
    assert 3 <= trial_deaths <= deaths
    _all_answered(play)


_MANIFEST = f"id: {_FOLDER}\napi: 1\nentrypoint: main:Brittle\n"
_SOURCES = {
    "import": "import os\nos.abort()\nclass Brittle: ...\n",
    "start": "import os\nclass Brittle:\n    async def start(self):\n        os.abort()\n",
    "later": (
        "import asyncio, os\nclass Brittle:\n    async def start(self):\n"
        "        asyncio.get_running_loop().call_later(0.5, os.abort)\n"
    ),
}
"""Extensions that abort the process when they are imported, when they start, and when trials may have begun."""

_TOOL = f"""
import os
from keepsaid.extensions import tool

class Brittle:
    @tool(kind="pure")
    async def {TOOL}(self, word: str) -> str:
        '''Grind a word.'''
        os.abort()
"""


def _extensions(play: Play) -> Path:
    """The folder of extensions in the home of a play."""
    return play.home / "config" / "extensions"


@pytest.mark.parametrize("when", _SOURCES)
def test_nobody_pays_for_an_extension_that_aborts_every_life(frail: Nursery, tmp_path: Path, when: str) -> None:
    play = Play(frail, tmp_path, scale=0.04)
    play.messages += [(room, f"{room} begins.") for room in _ROOMS]
    for _ in range(2):
        assert play.live(replace(play.plan, messages=tuple(play.messages)), 0.1) == -9
    put_folder(_extensions(play), _FOLDER, _MANIFEST, _SOURCES[when])
    for _ in range(3):
        assert play.live(replace(play.plan, messages=tuple(play.messages), drains=True)) == -6
    assert play.asked_count(_IN_FLIGHT) > 0
    assert play.asked(_CHARGED) == []
    command = (sys.executable, "-m", "keepsaid", "ext", "disable", _FOLDER)
    subprocess.run(command, check=True, capture_output=True, env={**environ(), "KEEPSAID_HOME": str(play.home)})
    assert play.drain() == 0
    assert play.asked(_NOTICES) == []
    _all_answered(play)


@pytest.mark.soak
def test_a_message_at_which_a_tool_aborts_dies_and_the_others_are_answered(frail: Nursery, tmp_path: Path) -> None:
    play = Play(frail, tmp_path, scale=0.04)
    put_folder(_extensions(play), _FOLDER, _MANIFEST, _TOOL)
    deaths = _poisoned(play, Killing(5, 0), "tool")
    _, trial_deaths = _one_dead(play)
    assert 3 <= trial_deaths <= deaths
    _all_answered(play)


@pytest.mark.soak
@pytest.mark.parametrize("loop", LOOPS)
def test_crash_loop_at_real_lengths(frail: Nursery, tmp_path: Path, figures: Figures, loop: str) -> None:
    play = Play(frail, tmp_path, scale=1.0)
    seen = _innocents(play, LOOPS[loop])
    figures(**seen, messages=len(play.messages))
    _all_answered(play)
