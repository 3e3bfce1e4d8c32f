"""The fence of a home: prompts use the key of the home, a retry sends the same bytes, and a backup keeps the key."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.test_reminding import ASKED, OWNER, Obedient, config, say, talking

from keepsaid.app.channels import FENCE_FILE, fence_of
from keepsaid.config import Home
from keepsaid.domain.turn import ModelAnswer
from keepsaid.errors import ModelUnavailable
from keepsaid.interfaces.cli.program import run
from keepsaid.ports.model import Delta, ModelRequest

_NUMBER = re.compile(r"\[Context from memory ([0-9a-f]{8})")


@dataclass
class Unsteady(Obedient):
    """Cannot be reached the first time it is asked."""

    outages: int = 0

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        answer = await super().answer(request, delta)
        if self.outages:
            self.outages -= 1
            raise ModelUnavailable("it does not answer", retry_after_s=0.01)
        return answer


async def recalled(folder: Path, model: Obedient, place: str = "one") -> list[str]:
    """Ask for what the home knows; returns what each call was reminded of."""
    async with talking(folder, config(), model) as instance:
        await say(instance, ASKED, replace(OWNER, conversation=f"terminal:{place}"))
    return [one.prompt.recalled for one in model.prompts]


def number_in(text: str) -> str:
    """The number of the one fence in a text."""
    [number] = _NUMBER.findall(text)
    assert text.rstrip().endswith(f"[End of data {number}]")
    return str(number)


async def test_prompts_use_the_key_of_the_home(tmp_path: Path) -> None:
    """The same text has one number in a home, also after a restart, and another one in another home."""
    [first] = await recalled(tmp_path / "a", Obedient())
    [again] = await recalled(tmp_path / "a", Obedient(), "two")
    [other] = await recalled(tmp_path / "b", Obedient())
    assert first == again
    assert number_in(other) != number_in(first)
    keys = [(tmp_path / name / "data" / FENCE_FILE).read_bytes() for name in "ab"]
    assert keys[0] != keys[1]


async def test_a_retry_sends_the_same_bytes(tmp_path: Path) -> None:
    model = Unsteady(outages=1)
    first, second = await recalled(tmp_path, model)
    assert number_in(first)
    assert first == second
    assert model.prompts[0].prompt.system == model.prompts[1].prompt.system


async def test_a_lost_key_is_made_again(tmp_path: Path) -> None:
    [first] = await recalled(tmp_path, Obedient())
    (tmp_path / "data" / FENCE_FILE).unlink()
    [second] = await recalled(tmp_path, Obedient(), "two")
    assert number_in(first) != number_in(second)
    assert first.replace(number_in(first), "") == second.replace(number_in(second), "")


def test_a_backup_keeps_the_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    home, made, restored = tmp_path / "home", tmp_path / "backup", tmp_path / "restored"
    assert run(["--home", str(home), "memory", "add", "The kettle is blue."]) == 0
    assert run(["--home", str(home), "data", "backup", str(made)]) == 0
    assert run(["data", "restore", str(made), "--to", str(restored)]) == 0
    capfd.readouterr()
    assert fence_of(Home.at(restored)) == fence_of(Home.at(home))
    assert (restored / "data" / FENCE_FILE).stat().st_mode & 0o077 == 0
