"""A backup taken beside the runtime, and held against what was acknowledged before it began."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from keepsaid_testkit.crash.evidence import MessageRow, number
from keepsaid_testkit.crash.evidence_stores import EvidenceFile
from keepsaid_testkit.crash.stage import Sandbox

_FILES = ("buffer.db", "memory.db")


class Backup:
    """One backup, from its beginning to its judgement."""

    def __init__(self, stage: Sandbox, folder: Path) -> None:
        self._folder = folder
        self._ledger = stage.ledgers.load
        self._told = stage.acknowledged.count()
        self._ending = ExitStack()
        self._process = self._ending.enter_context(stage.run_command("backup", ["data", "backup", str(folder)]))

    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def judged(self) -> list[str]:
        """Wait for its end, say what is wrong with it, and remove it."""
        code = self._process.wait()
        self._ending.close()
        try:
            return [f"kept: a backup ended with {code}"] if code else lacking(self._folder, self._acknowledged())
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _acknowledged(self) -> set[int]:
        """The messages that had been acknowledged when it began."""
        with self._ledger.open(encoding="utf-8") as lines:
            told = [json.loads(line) for line in islice(lines, self._told)]
        return {number(one["id"]) for one in told if one["what"] == "taken"}


def lacking(copy: Path, told: set[int]) -> list[str]:
    """What is wrong with a copy of both stores that must hold these messages."""
    wrong = []
    for name in _FILES:
        with EvidenceFile(next(copy.rglob(name))) as store:
            wrong += [f"sound: of a backup: {line}" for line in store.damage()]
    with EvidenceFile(next(copy.rglob(_FILES[0]))) as store:
        lost = told - {message.id for message in store.all(MessageRow)}
    return [*wrong, f"kept: {len(lost)} messages acknowledged before a backup are not in it"] if lost else wrong
