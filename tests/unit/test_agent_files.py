"""Files of an agent: identity and skills, found as they stand when a turn begins, without a restart."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from keepsaid.adapters.models.choose import LazyChat
from keepsaid.adapters.system.files import BYTES_MAX, IdentityFiles, SkillFolder
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.personality import Skills
from keepsaid.errors import ToolError
from keepsaid.pipeline.prompt.assemble import skill_tool
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer

ANN = Origin("http", "default", "room", "ann", "Ann", direct=True, trust=Trust.KNOWN)
GOOD = "---\nname: bookings\ndescription: Use when a table is to be booked.\n---\n\nCall first.\n"


def skill(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / "skills" / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


async def test_a_folder_is_read_by_name_and_again_when_it_changes(tmp_path: Path) -> None:
    shelf = SkillFolder(tmp_path)
    assert await shelf.read() == Skills()
    skill(tmp_path, "b", GOOD)
    skill(tmp_path, "a", GOOD.replace("bookings", "taxes"))
    first = await shelf.read()
    assert [(one.name, one.body) for one in first.known] == [("bookings", "Call first."), ("taxes", "Call first.")]
    file = skill(tmp_path, "b", GOOD.replace("Call", "Mail"))
    os.utime(file, ns=(1, 1))
    assert [one.body for one in (await shelf.read()).known] == ["Mail first.", "Call first."]
    assert first.known[0].body == "Call first.", "what a running turn holds stays as it was"
    file.unlink()
    assert [one.name for one in (await shelf.read()).known] == ["taxes"]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("no front", "does not begin with name and description"),
        (GOOD.replace("name: bookings\n", ""), "has no name"),
        (GOOD.replace("Use when a table is to be booked.", "''"), "has no description"),
        (GOOD.replace("bookings", "Book it!"), "not small letters"),
        (GOOD.replace("bookings", "b" * 65), "not small letters"),
        (GOOD.replace("Use when", "x" * 2_000), "longer than 1,024"),
        (GOOD.replace("bookings", "[[[["), "is not YAML"),
        ("---\n- a\n---\nbody", "is not a list of names and values"),
        (GOOD.replace("Call first.", ""), "says nothing below"),
        (GOOD + "x" * BYTES_MAX, "larger than"),
        (b"\xff\xfe\x00", "does not begin"),
    ],
)
async def test_a_broken_skill_is_named_and_left_out(tmp_path: Path, text: str | bytes, wrong: str) -> None:
    skill(tmp_path, "broken", text)
    skill(tmp_path, "sound", GOOD.replace("bookings", "taxes"))
    found = await SkillFolder(tmp_path).read()
    assert [one.name for one in found.known] == ["taxes"]
    [(name, why)] = found.broken
    assert name == "broken"
    assert wrong in why


async def test_two_skills_of_one_name_and_a_folder_without_a_file_are_told(tmp_path: Path) -> None:
    skill(tmp_path, "one", GOOD)
    skill(tmp_path, "two", GOOD)
    (tmp_path / "skills" / "zero").mkdir()
    (tmp_path / "skills" / "notes.txt").write_text("a plain file is no skill")
    found = await SkillFolder(tmp_path).read()
    assert len(found.known) == 1
    assert [name for name, _ in found.broken] == ["two", "zero"]


async def test_the_tool_reads_a_body_by_name(tmp_path: Path) -> None:
    skill(tmp_path, "b", GOOD)
    tool = skill_tool(await SkillFolder(tmp_path).read())
    assert await tool.run({"name": "bookings"}) == "Call first."
    for wrong in ({"name": "other"}, {"name": 7}, {}):
        with pytest.raises(ToolError, match="there are: bookings"):
            await tool.run(wrong)  # type: ignore[arg-type]


async def test_identity_files_are_joined_and_read_again(tmp_path: Path) -> None:
    files = IdentityFiles(tmp_path)
    assert await files.read() == ""
    (tmp_path / "USER.md").write_text("Ann lives in Graz.\n")
    (tmp_path / "SOUL.md").write_bytes(b"\xef\xbb\xbfBe kind.\x00")
    assert await files.read() == "# SOUL.md\nBe kind.\ufffd\n\n# USER.md\nAnn lives in Graz."
    (tmp_path / "SOUL.md").unlink()
    assert await files.read() == "# USER.md\nAnn lives in Graz."
    (tmp_path / "IDENTITY.md").mkdir()
    assert await files.read() == "# USER.md\nAnn lives in Graz.", "what cannot be read is left out"


async def said(instance: Instance, text: str) -> None:
    received = await instance.receive(Inbound(ANN, Content(text.encode(), text)))
    with instance.hub.listening(received.id) as queue:
        while (await queue.get()).kind != "settled":
            pass


async def test_a_change_shows_in_the_next_turn_and_not_in_the_running_one(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    soul = home.agent("main") / "SOUL.md"
    soul.parent.mkdir(parents=True)
    soul.write_text("You are Pim.")
    skill(home.agent("main"), "b", GOOD)
    script = Script(Call("skill", {"name": "bookings"}), Say("done"), Say("again"))
    async with ModelServer(script) as server:
        config = Config(models={"chat": "openai/x", "api_key": "key", "base_url": server.url}, buffer={"window_ms": 0})
        chat = LazyChat("openai/x", config.models)
        async with opened(home, config, chat) as instance:
            await instance.start()
            turn = asyncio.create_task(said(instance, "book a table"))
            await server.wait_for(1)
            soul.write_text("You are Tom, of late.")
            skill(home.agent("main"), "c", GOOD.replace("bookings", "taxes"))
            await turn
            await said(instance, "thank you")
        await chat.close()
        first, second, third = (str(request.messages[0]["content"]) for request in server.requests)
        result = server.requests[1].last("tool")
    assert first == second
    assert ("Pim" in first, "taxes" in first, result) == (True, False, "Call first.")
    assert ("Tom, of late" in third, "- taxes:" in third) == (True, True)


async def test_what_a_person_asked_for_holds_from_the_next_turn_on_and_after_a_restart(tmp_path: Path) -> None:
    script = Script(
        Call("set_personality", {"text": "Rhyme."}), Say("ok", usage=(4_000, 5)), Say("a", usage=(4_000, 5))
    )
    async with ModelServer(script) as server:
        config = Config(models={"chat": "openai/x", "api_key": "key", "base_url": server.url}, buffer={"window_ms": 0})
        for text in ("please rhyme", "hello", "and now?"):
            chat = LazyChat("openai/x", config.models)
            async with opened(Home.at(tmp_path), config, chat) as instance:
                await instance.start()
                await said(instance, text)
                last = await instance.operations.last_turn(None)
                turn = await instance.operations.turn(last or 0)
            await chat.close()
        prompts = [str(request.messages[0]["content"]) for request in server.requests]
    assert ["Rhyme." in prompt for prompt in prompts] == [False, False, True, True]
    assert turn is not None
    assert isinstance(turn.trace, dict)
    assert float(str(turn.trace["factor"])) > 1.2, "the model counts more than is estimated, and said so"
