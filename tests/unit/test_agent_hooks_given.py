"""What a session of a coding agent was given is a note on disk: it outlives the process, and goes with its person."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit import agent_hooks_cast as cast
from tests.unit.agent_hooks_cast import given
from tests.unit.http_cast import Site, site
from tests.waits import HANG_S

from keepsaid.domain.principal import Principal
from keepsaid.domain.project import in_project
from keepsaid.services.agent_hooks import GIVEN_MS
from keepsaid.services.forgetting import ForgetRequest

NOTES = "SELECT name, text, until FROM note WHERE name LIKE 'hook-session:%'"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return cast.repository(tmp_path / "api", "git@github.com:acme/api.git")


def person(here: Site) -> Principal:
    """Who the key of the coding agent is in the project."""
    return in_project(here.instance.config.keys["coder"].principal("coder"), "github.com/acme/api")


async def test_what_a_session_was_given_outlives_the_process_for_a_week(tmp_path: Path, project: Path) -> None:
    root = tmp_path / "home"

    def asking(number: int) -> dict[str, object]:
        return cast.hook(
            "UserPromptSubmit", project, "after", prompt="what is the parrot called?", prompt_id=f"q{number}"
        )

    async with site(root, keys=cast.keys(root / "projects")) as first:
        await first.instance.services.assistant.save(person(first), "The parrot is called Rico")
        assert "Rico" in await given(first, asking(1))
    async with site(root, keys=cast.keys(root / "projects")) as second:
        assert "Rico" not in await given(second, asking(2))
        [(name, text, until)] = second.rows(NOTES)
        assert "Rico" not in text
        assert 0 < until - second.instance.clock.now_ms() <= GIVEN_MS
        later = second.instance.clock.now_ms() + GIVEN_MS
        assert await second.instance.operations.note(name, later) == ""


async def test_the_note_of_a_session_goes_with_its_person(tmp_path: Path, project: Path) -> None:
    root = tmp_path / "home"
    async with site(root, keys=cast.keys(root / "projects")) as here:
        await given(here, cast.hook("UserPromptSubmit", project, "a", prompt="The parrot is Rico", prompt_id="p1"))
        await given(here, cast.hook("SessionStart", project, "a"))
        assert len(here.rows(NOTES)) == 1
        who = person(here)
        forgetting = here.instance.services.forgetting
        await forgetting.forget(ForgetRequest(person=who.person), who.person)
        async with asyncio.timeout(HANG_S):
            while here.rows(NOTES):
                await here.client.get("/healthz")
