"""Poison: a message that stops the program, for real, is found, given up and told of; nobody else pays for it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
from tests.crash.poisoned import CROWD, CROWDED, INNOCENTS, POISON, VICTIM
from tests.crash.rows import asked

from keepsaid_testkit.crash.fork import Nursery, nursery
from keepsaid_testkit.crash.order import Order

_CHARGED = {"segfault": 3, "abort": 3, "crowd": 3, "stuck": 3, "memory": 3, "hang": 1, "fickle": 1}
"""What each kind is charged: what hangs is taken for an outage, and given up when that has lasted too long."""

_DEATHS = {"segfault": (5, 9), "abort": (5, 9), "crowd": (6, 14), "stuck": (5, 9), "fickle": (2, 2)}
"""How often it stops the program, at least and at most: in company, as a suspect, and alone in trials."""

_MORE = {"segfault": 10, "memory": 10}
_LIFE_S = 240.0
_LOOK_S = 0.02

_ANSWERS = """
SELECT message.id, lane.conversation, message.text, batch.state, batch.attempts,
  (SELECT count(*) FROM reply WHERE reply.batch_id = batch.id AND NOT notice),
  (SELECT count(*) FROM transcript WHERE role = 'user' AND ref = 'message:' || message.id)
FROM message JOIN lane ON lane.id = message.lane_id
LEFT JOIN batch ON batch.lane_id = message.lane_id AND number BETWEEN first AND last
WHERE event NOT IN ('recorded', 'answered') ORDER BY message.id
"""
_DEAD = "SELECT id, attempts, error, fence, ended_at FROM batch WHERE state = 'dead'"
_BESIDE = "SELECT count(*) > 0 FROM batch WHERE state = 'done' AND crashes > 0"
_NOTICES = "SELECT id, batch_id, conversation, text FROM reply WHERE notice"


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A fork server for lives with a model that cannot bear one word."""
    log = tmp_path_factory.mktemp("frail") / "forks.log"
    with log.open("ab") as errors, nursery("tests.crash.poisoned:main", (), errors) as opened:
        yield opened


class Lives:
    """One life after another on one home."""

    def __init__(self, frail: Nursery, folder: Path, kind: str) -> None:
        self.home = folder / "home"
        self.number = 0
        self._frail = frail
        self._log = folder / "lives.log"
        self._kind = kind

    def live(self) -> int:
        """The next life, to its end; one that is stuck is killed. Returns its exit code."""
        arguments, met = (self._kind, str(self.number)), self.met()
        life = self._frail.fork(Order(arguments, str(self.home), str(self._log), str(self._log)))
        self.number += 1
        deadline = monotonic() + _LIFE_S
        while monotonic() < deadline:
            try:
                return life.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                if self._kind == "stuck" and self.met() > met:
                    break
        life.kill()
        assert monotonic() < deadline, self._log.read_text("utf-8")
        return life.wait()

    def met(self) -> int:
        """How often the model met the word."""
        file = self.home / "met"
        return file.read_text("utf-8").count(self._kind) if file.exists() else 0

    def asked(self, statement: str) -> list[tuple[object, ...]]:
        """What the operational store says."""
        return asked(self.home / "data" / "buffer.db", statement)


@pytest.mark.parametrize("kind", _CHARGED)
def test_a_poison_is_given_up_and_nobody_else_pays(frail: Nursery, tmp_path: Path, kind: str) -> None:
    lives = Lives(frail, tmp_path, kind)
    least, most = _DEATHS.get(kind, (0, 0))
    deaths = 0
    while lives.live() < 0:
        deaths += 1
        assert deaths <= most
    assert deaths >= least, (tmp_path / "lives.log").read_text("utf-8")
    [dead] = lives.asked(_DEAD)
    [notice] = lives.asked(_NOTICES)
    charged = int(str(dead[1]))
    assert _CHARGED[kind] <= charged <= max(_CHARGED[kind], deaths), "one death may be worth two charges"
    assert notice[1:3] == (dead[0], VICTIM)
    assert "could not answer" in str(notice[3])
    assert lives.asked(_BESIDE) == [(deaths > 0,)], "the innocent were in flight too"
    met = lives.met()
    for _ in range(_MORE.get(kind, 2)):
        assert lives.live() == 0
    assert (lives.asked(_DEAD), lives.asked(_NOTICES), lives.met()) == ([dead], [notice], met)
    answers = lives.asked(_ANSWERS)
    assert len({message_id for message_id, *_ in answers}) == len(answers), "a message is in one batch"
    poison = [answer[1:] for answer in answers if POISON in str(answer[2])]
    assert poison == [(VICTIM, f"say {POISON}", "dead", charged, 0, 0)]
    wanted = {(room, f"hello {n}") for room in INNOCENTS for n in range(lives.number)}
    wanted |= {(VICTIM, text) for text in (CROWDED[:1] if kind == CROWD else ("hello",))}
    wanted |= {(VICTIM, "and then?")}
    innocent = [answer[1:] for answer in answers if POISON not in str(answer[2])]
    assert {(room, text) for room, text, *_ in innocent} == wanted
    assert [answer for answer in innocent if answer[2:] != ("done", 0, 1, 1)] == []
