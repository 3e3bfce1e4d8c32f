"""Companions: processes beside the one that a play kills, at the same database, each in a home of its own."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from keepsaid_testkit.crash.fork import Fork, Nursery, StageError
from keepsaid_testkit.crash.stage import Sandbox, listens, own_address

_KEYS = ("forgotten.key", "forgotten.hashes")
"""What a home needs of another one to work with its database."""

_STRUCK = 0.5
"""The share of lives beside which a companion is killed."""

_FROZEN_S = 20.0
"""A process that did nothing for so long is taken for dead, and its work was taken over."""

_ENDS_S = 60.0


class Companions:
    """Processes that serve beside another one; any of them may lead, and is killed now and then.

    With two or more, one at a time is frozen for longer than its life is kept. When it wakes, with leases and fences of
    before, it has to end by itself.
    """

    def __init__(self, stage: Sandbox, forks: Sequence[Nursery], seed: int) -> None:
        self._stage = stage
        self._forks = forks
        self._chance = random.Random(f"companions:{seed}")  # noqa: S311 - repeatable, not secret
        self._lives: list[Fork] = []
        self._frozen: tuple[int, float] | None = None
        self.kills = self.fenced = 0

    def begin(self) -> None:
        """Start them; the stores are there, and the home of the stage has their key."""
        self._lives = [forks.fork(self._stage.order_in(self._home(n))) for n, forks in enumerate(self._forks)]

    def strike(self) -> None:
        """Wake who was frozen for long enough; kill one, or none, and start it again; freeze one."""
        if self._frozen is not None and monotonic() - self._frozen[1] >= _FROZEN_S:
            self._wake(self._frozen[0])
        awake = [n for n in range(len(self._lives)) if self._frozen is None or n != self._frozen[0]]
        if awake and self._chance.random() < _STRUCK:
            n = self._chance.choice(awake)
            self._check(self._lives[n])
            self._lives[n].kill()
            self.kills += 1
            self._start(n)
        serving = [n for n in awake if listens(self._home(n), self._lives[n].pid)]
        if serving and len(awake) > 1:
            n = self._chance.choice(serving)
            self._check(self._lives[n])
            self._lives[n].send_signal(signal.SIGSTOP)
            self._frozen = n, monotonic()

    def _start(self, n: int) -> None:
        self._lives[n] = self._forks[n].fork(self._stage.order_in(self._home(n)))

    def _wake(self, n: int) -> None:
        """Continue a frozen process, and fail unless it ends by itself; then start it again."""
        self._frozen = None
        life = self._lives[n]
        life.send_signal(signal.SIGCONT)
        try:
            code = life.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            raise StageError(f"a process goes on that was taken for dead\n{self._stage.logs.tails()}") from None
        if code == 0:
            raise StageError(f"a process that was taken for dead ended as if it was not\n{self._stage.logs.tails()}")
        self.fenced += 1
        self._start(n)

    def wake(self) -> None:
        """Wake the one that is frozen, in its time."""
        if self._frozen is not None:
            n, since = self._frozen
            with suppress(subprocess.TimeoutExpired):
                self._lives[n].wait(max(0.0, since + _FROZEN_S - monotonic()))
            self._wake(n)

    def end(self) -> None:
        """Stop them."""
        for life in self._lives:
            self._check(life)
            self._stage.stop(life)
        self._lives = []

    def kill(self) -> None:
        """End them at once."""
        for life in self._lives:
            life.kill()

    def _check(self, life: Fork) -> None:
        """Fail when one ended by itself."""
        try:
            code = life.wait(0)
        except subprocess.TimeoutExpired:
            return
        raise StageError(f"a companion ended by itself ({code})\n{self._stage.logs.tails()}")

    def _home(self, n: int) -> Path:
        """The home of a companion, made when it is first asked for."""
        first, home = self._stage.home, self._stage.folder / f"home{n + 1}"
        if not home.exists():
            for folder in ("config", "data"):
                (home / folder).mkdir(parents=True)
            settings = json.loads((first / "config" / "config.yaml").read_text("utf-8"))
            settings["server"]["host"] = own_address()
            (home / "config" / "config.yaml").write_text(json.dumps(settings), "utf-8")
            for name in _KEYS:
                if (key := first / "data" / name).exists():
                    shutil.copy(key, home / "data" / name)
        return home
