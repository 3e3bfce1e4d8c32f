"""Companions: processes beside the one that a play kills, at the same database, each in a home of its own."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from keepsaid_testkit.crash.fork import Fork, Nursery, StageError
from keepsaid_testkit.crash.stage import Sandbox, own_address

_KEYS = ("forgotten.key", "forgotten.hashes")
"""What a home needs of another one to work with its database."""

_STRUCK = 0.5
"""The share of lives beside which a companion is killed."""


class Companions:
    """Processes that serve beside another one; any of them may lead, and is killed now and then."""

    def __init__(self, stage: Sandbox, forks: Sequence[Nursery], seed: int) -> None:
        self._stage = stage
        self._forks = forks
        self._chance = random.Random(f"companions:{seed}")  # noqa: S311 - repeatable, not secret
        self._lives: list[Fork] = []
        self.kills = 0

    def begin(self) -> None:
        """Start them; the stores are there, and the home of the stage has their key."""
        self._lives = [forks.fork(self._stage.order_in(self._home(n))) for n, forks in enumerate(self._forks)]

    def strike(self) -> None:
        """Kill one, or none, and start it again."""
        if not self._lives or self._chance.random() >= _STRUCK:
            return
        n = self._chance.randrange(len(self._lives))
        self._check(self._lives[n])
        self._lives[n].kill()
        self.kills += 1
        self._lives[n] = self._forks[n].fork(self._stage.order_in(self._home(n)))

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
