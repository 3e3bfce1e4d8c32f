"""Hooks of coding agents over HTTP: prompts and answers are stored once, and memory stays in its project."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from itertools import count, cycle, product
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.unit import agent_hooks_cast as cast
from tests.unit.agent_hooks_cast import given, post, projects, stored
from tests.unit.http_cast import Site, refused, site

from keepsaid.domain.agent_hook import AGENTS, HookEvent
from keepsaid.domain.project import in_project

pytestmark = pytest.mark.asyncio(loop_scope="module")

_SESSIONS = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    root = tmp_path_factory.mktemp("home")
    async with site(root, keys=cast.keys(root / "projects")) as running:
        yield running


@pytest.fixture
def session() -> str:
    """A session of its own."""
    return f"session-{next(_SESSIONS)}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that no other test works in."""
    return cast.repository(tmp_path / "api", f"git@github.com:acme/{tmp_path.name}.git")


async def test_a_prompt_is_stored_once_and_later_sessions_of_the_project_are_given_it(
    one: Site, project: Path, session: str
) -> None:
    prompt = "The staging database listens on port 5544"
    first = cast.hook("UserPromptSubmit", project, session, prompt=prompt, prompt_id="p1")
    assert [await given(one, first) for _ in range(3)] == [""] * 3
    assert await stored(one, project, session) == [("user", prompt)]
    asked = cast.hook(
        "UserPromptSubmit", project, f"{session}-b", prompt="which port has the staging database?", prompt_id="p2"
    )
    assert "5544" in await given(one, asked)


async def test_a_session_is_given_a_memory_once_until_its_context_is_gone(
    one: Site, project: Path, session: str
) -> None:
    await given(one, cast.hook("UserPromptSubmit", project, session, prompt="The parrot is Rico", prompt_id="p1"))
    later = f"{session}-b"

    def asking(number: int) -> dict[str, object]:
        return cast.hook(
            "UserPromptSubmit", project, later, prompt="what is the parrot called?", prompt_id=f"q{number}"
        )

    assert "Rico" in await given(one, asking(1))
    assert "Rico" not in await given(one, asking(2))
    await given(one, cast.hook("SessionStart", project, later, source="resume"))
    assert "Rico" not in await given(one, asking(3))
    await given(one, cast.hook("SessionStart", project, later, source="compact"))
    assert "Rico" in await given(one, asking(4))


async def test_two_projects_know_nothing_of_each_other(one: Site, project: Path, session: str, tmp_path: Path) -> None:
    said = cast.hook("UserPromptSubmit", project, session, prompt="The deploy key is called heron", prompt_id="p1")
    await given(one, said)
    ask = {"prompt": "what is the deploy key called?", "prompt_id": "p2"}
    other = cast.repository(tmp_path / "web", "https://github.com/acme/web.git")
    assert await given(one, cast.hook("UserPromptSubmit", other, f"{session}-b", **ask)) == ""
    assert await given(one, cast.hook("UserPromptSubmit", tmp_path, f"{session}-c", **ask)) == ""
    assert await given(one, cast.hook("UserPromptSubmit", project, f"{session}-d", **ask), name="other") == ""
    clone = cast.repository(tmp_path / "clone", f"https://ann:secret@GitHub.com/acme/{tmp_path.name}")
    assert "heron" in await given(one, cast.hook("UserPromptSubmit", clone, f"{session}-e", **ask))


async def test_the_owner_lets_two_projects_share_memory(one: Site, project: Path, session: str, tmp_path: Path) -> None:
    web = cast.repository(tmp_path / "web", f"https://github.com/acme/{tmp_path.name}-web")
    said = cast.hook("UserPromptSubmit", project, session, prompt="The queue is called Puffin", prompt_id="p1")
    ask = {"prompt": "what is the queue called?"}
    await given(one, said)
    assert await given(one, cast.hook("UserPromptSubmit", web, f"{session}-b", prompt_id="p2", **ask)) == ""
    names = [f"library:coder:coder@github.com/acme/{name}" for name in (tmp_path.name, f"{tmp_path.name}-web")]
    joined = await one.client.post("/v1/people/join", json={"names": names}, headers=one.owner)
    assert joined.status_code == 200, joined.text
    assert "Puffin" in await given(one, cast.hook("UserPromptSubmit", web, f"{session}-c", prompt_id="p3", **ask))
    (third := tmp_path / "third").mkdir()
    assert await given(one, cast.hook("UserPromptSubmit", third, f"{session}-d", prompt_id="p4", **ask)) == ""


async def test_a_key_of_the_owner_has_one_memory_for_all_projects(
    one: Site, project: Path, session: str, tmp_path: Path
) -> None:
    said = cast.hook("UserPromptSubmit", project, session, prompt="My editor is Helix", prompt_id="p1")
    ask = cast.hook("UserPromptSubmit", tmp_path, f"{session}-b", prompt="which editor is mine?", prompt_id="p2")
    await given(one, said, name="mine")
    assert "Helix" in await given(one, ask, name="mine")
    assert await given(one, {**ask, "session_id": f"{session}-c"}) == ""


async def test_a_prompt_that_nothing_bears_on_is_given_nothing(one: Site, project: Path, session: str) -> None:
    await given(one, cast.hook("UserPromptSubmit", project, session, prompt="The linter is ruff", prompt_id="p1"))
    hello = cast.hook("UserPromptSubmit", project, f"{session}-b", prompt="good morning", prompt_id="p2")
    assert (await post(one, hello)).json() == {}


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd"])
@pytest.mark.parametrize("named", [True, False])
async def test_a_transcript_is_stored_from_its_last_line_on_and_no_prompt_twice(
    one: Site, project: Path, session: str, event: str, *, named: bool
) -> None:
    transcript = cast.Transcript(projects(one) / "a", session)
    path = {"transcript_path": str(transcript.path)}
    wanted: list[tuple[str, str]] = []
    for n, prompt in enumerate(("run the tests", "continue", "continue"), start=1):
        prompt_id = {"prompt_id": f"p{n}"} if named else {}
        submitted = cast.hook("UserPromptSubmit", project, session, prompt=prompt, **prompt_id, **path)
        for _ in range(2):
            await given(one, submitted)
        transcript.turn(prompt, f"answer {n}", f"p{n}" if named else "")
        for _ in range(2):
            assert await given(one, cast.hook(event, project, session, last_assistant_message="x", **path)) == ""
        wanted += [("user", prompt), ("assistant", f"answer {n}")]
        assert await stored(one, project, session) == wanted


async def test_a_process_that_knows_nothing_of_a_session_stores_no_line_twice(
    one: Site, project: Path, session: str
) -> None:
    transcript = cast.Transcript(projects(one) / "a", session)
    for n in range(70):
        transcript.turn(f"question {n}", f"answer {n}", f"p{n}")
    stop = cast.hook("Stop", project, session, transcript_path=str(transcript.path))
    await given(one, stop)
    before = await stored(one, project, session)
    assert len(before) == 140
    one.instance.services.hooks._sessions.clear()
    await given(one, stop)
    assert await stored(one, project, session) == before


async def test_hooks_at_the_same_time_store_once(one: Site, project: Path, session: str) -> None:
    transcript = cast.Transcript(projects(one) / "a", session)
    for n in range(60):
        transcript.turn(f"question {n}", f"answer {n}", f"p{n}")
    path = {"transcript_path": str(transcript.path)}
    hooks = [cast.hook(event, project, session, **path) for event in ("Stop", "PreCompact", "SessionEnd", "Stop")]
    prompt = cast.hook("UserPromptSubmit", project, session, prompt="question 59", prompt_id="p59", **path)
    await asyncio.gather(*(given(one, fields) for fields in (*hooks, prompt, prompt)))
    assert len(await stored(one, project, session)) == 120


async def test_a_broken_last_line_is_read_when_it_is_whole(one: Site, project: Path, session: str) -> None:
    transcript = cast.Transcript(projects(one) / "a", session)
    transcript.turn("one", "first", "p1")
    transcript.raw("{not json}\n")
    whole = json.dumps({
        "type": "assistant", "uuid": "u9", "message": {"content": [{"type": "text", "text": "second"}]}
    })  # fmt: skip
    transcript.raw(whole[:30])
    stop = cast.hook("Stop", project, session, transcript_path=str(transcript.path))
    await given(one, stop)
    assert await stored(one, project, session) == [("user", "one"), ("assistant", "first")]
    transcript.raw(f"{whole[30:]}\n")
    await given(one, stop)
    assert (await stored(one, project, session))[-1] == ("assistant", "second")


async def test_only_transcripts_below_the_folder_of_the_key_are_read(
    one: Site, project: Path, session: str, tmp_path: Path
) -> None:
    outside = cast.Transcript(tmp_path / "outside", session)
    outside.turn("a secret plan", "a secret answer", "p1")
    inside = projects(one) / "links"
    inside.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe := inside / "pipe.jsonl")
    link = inside / f"{tmp_path.name}.jsonl"
    link.symlink_to(outside.path)
    climbing = inside / ".." / ".." / ".." / outside.path.relative_to(outside.path.anchor)
    for path in (
        str(outside.path),
        str(link),
        str(climbing),
        "/etc/passwd",
        "/dev/zero",
        "relative.jsonl",
        "\0",
        "/\udc80",
        str(pipe),
    ):
        await given(one, cast.hook("Stop", project, session, transcript_path=path))
    allowed = cast.Transcript(projects(one) / "a", session)
    allowed.turn("not for this key", "nor this", "p1")
    await given(one, cast.hook("Stop", project, session, transcript_path=str(allowed.path)), name="other")
    assert await stored(one, project, session) == []
    assert one.rows("SELECT 1 FROM message WHERE text LIKE '%secret plan%' OR text LIKE 'not for this key'") == []


async def test_lines_of_another_session_are_not_stored(one: Site, project: Path, session: str) -> None:
    transcript = cast.Transcript(projects(one) / "a", session)
    transcript.write("user", "of another session", sessionId="another")
    transcript.write("user", "of this session")
    await given(one, cast.hook("Stop", project, session, transcript_path=str(transcript.path)))
    assert await stored(one, project, session) == [("user", "of this session")]


async def test_private_parts_are_stored_nowhere(one: Site, project: Path, session: str) -> None:
    prompt = "Use the mirror <private>with the password hunter2</private> for builds"
    await given(one, cast.hook("UserPromptSubmit", project, session, prompt=prompt, prompt_id="p1"))
    alone = "<private>nothing of this"
    await given(one, cast.hook("UserPromptSubmit", project, session, prompt=alone, prompt_id="p2"))
    transcript = cast.Transcript(projects(one) / "a", session)
    transcript.turn(prompt, "Noted <private>hunter2</private>.", "p1")
    await given(one, cast.hook("Stop", project, session, transcript_path=str(transcript.path)))
    assert await stored(one, project, session) == [("user", "Use the mirror  for builds"), ("assistant", "Noted .")]
    assert one.rows("SELECT 1 FROM message WHERE text LIKE '%hunter2%' OR text LIKE '%nothing of this%'") == []


@pytest.mark.parametrize("value", ["1", "true", "yes"])
async def test_the_switch_of_the_environment_stores_and_gives_nothing(
    one: Site, project: Path, session: str, value: str
) -> None:
    said = cast.hook("UserPromptSubmit", project, session, prompt="The switch is off", prompt_id="p1")
    assert (await post(one, said, **{"X-Keepsaid-Off": value})).json() == {}
    assert await stored(one, project, session) == []
    for number, left in enumerate(("", "0", "$KEEPSAID_OFF")):
        await post(one, {**said, "prompt_id": f"q{number}"}, **{"X-Keepsaid-Off": left})
    assert len(await stored(one, project, session)) == 3


async def test_a_file_turns_the_hooks_off_in_a_folder_and_below(one: Site, project: Path, session: str) -> None:
    (inner := project / "docs").mkdir()
    (inner / ".keepsaid-off").touch()
    said = {"prompt": "The hooks are off here", "prompt_id": "p1"}
    for folder in (inner, inner / "deeper"):
        assert await given(one, cast.hook("UserPromptSubmit", folder, session, **said)) == ""
    assert await stored(one, project, session) == []
    await given(one, cast.hook("UserPromptSubmit", project, session, **said))
    assert len(await stored(one, project, session)) == 1


async def test_a_tools_output_is_cut_redacted_and_read_in_its_session_alone(
    one: Site, project: Path, session: str
) -> None:
    secret = "ghp_" + "a1B2" * 9
    output = {"stdout": f"The otter is called Olga, token {secret} " + "x" * 200_000}
    fields = {"tool_name": "Bash", "tool_input": {"command": "cat otter"}, "tool_response": output}
    tool = cast.hook("PostToolUse", project, session, tool_use_id="toolu_1", prompt_id="p1", **fields)
    for _ in range(2):
        await given(one, tool)
    [(_, text)] = await stored(one, project, session)
    assert "Olga" in text
    assert len(text.encode()) <= 2_000
    assert secret not in text
    assert one.rows("SELECT trust, sender FROM message WHERE text LIKE '%Olga%'") == [("external", "outside")]
    ask = {"prompt": "what is the otter called?", "prompt_id": "p2"}
    assert "Olga" not in await given(one, cast.hook("UserPromptSubmit", project, f"{session}-b", **ask))


async def test_a_session_starts_with_what_is_known_of_its_project_and_is_not_given_it_twice(
    one: Site, project: Path, session: str, tmp_path: Path
) -> None:
    start = cast.hook("SessionStart", project, session)
    assert await given(one, start) == ""
    name = f"github.com/acme/{tmp_path.name}"
    who = in_project(one.instance.config.keys["coder"].principal("coder"), name)
    for n in range(40):
        await one.instance.services.assistant.save(who, f"Module {n} is owned by team {n}, which reviews all of it")
    assert one.instance.briefings is not None
    await one.instance.briefings.refresh(who.scope())
    told = await given(one, start)
    assert "is owned by team" in told
    assert len(told) <= 2_000
    assert await given(one, {**start, "source": "resume"}) == ""
    assert await given(one, {**start, "source": "compact"}) == told
    assert await given(one, cast.hook("SessionStart", project, f"{session}-b")) == told
    other = cast.repository(tmp_path / "web", "https://github.com/acme/web.git")
    assert await given(one, cast.hook("SessionStart", other, session)) == ""


async def test_codex_names_its_turns_and_sends_its_answers(one: Site, project: Path, session: str) -> None:
    said = cast.codex("UserPromptSubmit", project, session, prompt="Where are the tests?")
    stop = cast.codex("Stop", project, session, stop_hook_active=False, last_assistant_message="In tests/.")
    for fields in (said, said, stop, stop):
        assert await given(one, fields, agent="codex") == ""
    assert await stored(one, project, session, "codex") == [
        ("user", "Where are the tests?"), ("assistant", "In tests/.")
    ]  # fmt: skip


async def test_messages_of_a_plugin_are_stored_once(one: Site, project: Path, session: str) -> None:
    said = cast.hook("UserPromptSubmit", project, session, prompt="Where are the docs?", prompt_id="msg_1")
    messages: list[dict[str, Any]] = [
        {"role": "user", "id": "msg_1", "text": "Where are the docs?"},
        {"role": "assistant", "id": "msg_2", "text": "In docs/."},
        {"role": "assistant", "id": "", "text": "without an id"},
    ]
    for fields in (said, stop := cast.hook("Stop", project, session, messages=messages), stop):
        await given(one, fields, agent="opencode")
    assert await stored(one, project, session, "opencode") == [
        ("user", "Where are the docs?"), ("assistant", "In docs/.")
    ]  # fmt: skip


async def test_an_event_that_nothing_is_known_of_is_answered_with_nothing(one: Site, project: Path) -> None:
    for event in ("Notification", "PreModelSwitch", "UserPromptSubmit"):
        assert (await post(one, cast.hook(event, project))).json() == {}


@pytest.mark.parametrize("name", ["reader", "writer"])
async def test_a_key_needs_both_scopes(one: Site, project: Path, name: str) -> None:
    told = refused(await post(one, cast.hook("UserPromptSubmit", project, prompt="x"), name), 403)
    assert ("write" if name == "reader" else "read") in told["title"]


async def test_bad_calls_are_refused_with_nothing_stored(one: Site, project: Path) -> None:
    before = one.rows("SELECT count(*) FROM message")
    fields = cast.hook("UserPromptSubmit", project, prompt="refused")
    refused(await one.client.post("/v1/hooks/claude-code", json=fields), 401)
    refused(await post(one, b"{not json"), 400)
    refused(await post(one, b"[1]"), 400)
    refused(await post(one, {**fields, "session_id": 7}), 400)
    refused(await post(one, {"session_id": "s"}), 400)
    refused(await post(one, fields, agent="nobody"), 404)
    refused(await post(one, {**fields, "prompt": "x" * 21_000_000}), 413)
    assert one.rows("SELECT count(*) FROM message") == before


_ODD: Sequence[object] = (
    None, True, -1, 1e308, "", " ", "\0", "\ud800", "x" * 2_000, "../../etc", "a#b:c", [], {}, [[]], [{}] * 3,
    {"": None}, "/dev/zero", "Stop", "UserPromptSubmit", "claude-code", [{"role": 1, "id": "i", "text": "t"}],
)  # fmt: skip


@pytest.mark.parametrize("event", list(HookEvent))
async def test_odd_fields_break_nothing(one: Site, project: Path, session: str, event: str) -> None:
    whole = cast.hook(
        event, project, session, prompt="hello", prompt_id="p", source="startup", transcript_path="/a.jsonl",
        tool_name="Bash", tool_use_id="t", tool_input={"a": 1}, tool_response="x", last_assistant_message="m",
        messages=[{"role": "user", "id": "i", "text": "t"}],
    )  # fmt: skip
    for agent, (name, odd) in zip(cycle(AGENTS), product(whole, _ODD), strict=False):
        answer = await post(one, {**whole, name: odd}, agent=agent)
        assert answer.status_code in ((200, 400) if name in ("session_id", "hook_event_name") else (200,)), answer.text


async def test_a_long_prompt_is_cut_and_stored(one: Site, project: Path, session: str) -> None:
    await given(one, cast.hook("UserPromptSubmit", project, session, prompt="word " * 100_000, prompt_id="p1"))
    [(_, text)] = await stored(one, project, session)
    assert len(text) == 50_000


async def test_a_store_that_takes_nothing_costs_the_agent_nothing(tmp_path: Path, project: Path) -> None:
    """Memory is given as before, and what was said is recorded once there is room."""
    root = tmp_path / "home"
    transcript = cast.Transcript(root / "projects" / "a", "full")
    path = {"transcript_path": str(transcript.path)}
    said = cast.hook("UserPromptSubmit", project, "full", prompt="The pump is in the cellar", prompt_id="p1", **path)
    stop = cast.hook("Stop", project, "full", **path)
    async with site(root, keys=cast.keys(root / "projects"), buffer={"min_free_disk_mb": 1_000_000_000}) as full:
        transcript.turn("The pump is in the cellar", "Noted.", "p1")
        for fields in (cast.hook("SessionStart", project, "full"), said, stop):
            assert await given(full, fields) == ""
        assert await stored(full, project, "full") == []
    async with site(root, keys=cast.keys(root / "projects")) as roomy:
        await given(roomy, stop)
        assert len(await stored(roomy, project, "full")) == 2


async def test_the_same_session_of_another_key_is_another_conversation(one: Site, project: Path, session: str) -> None:
    said = cast.hook("UserPromptSubmit", project, session, prompt="said with another key", prompt_id="p1")
    await given(one, said, name="other")
    assert await stored(one, project, session) == []
    await given(one, {**said, "prompt": "said with this key"})
    assert await stored(one, project, session) == [("user", "said with this key")]
