"""Commands under the names they had in the release before: they run, and say what they are called now."""

from __future__ import annotations

import pytest

from keepsaid.interfaces.cli.program import run


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ("collect ls", "memory extract"),
        ("task ls", "inbox tasks"),
        ("memory wrong", "memory flag"),
        ("memory widen", "memory share"),
        ("inbox undrop", "inbox requeue"),
    ],
)
def test_a_former_name_is_taken_with_a_warning(former: str, now: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*former.split(), "--help"]) == 0
    told = capsys.readouterr()
    assert f"is called `keepsaid {now}` now" in told.err
    assert f"Usage: keepsaid {now}" in told.out


def test_a_name_of_today_is_taken_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "extract", "ls", "--help"]) == 0
    assert capsys.readouterr().err == ""
