"""Coding agents as their hooks show them: calls with the fields of the public references, and transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
from tests.unit.http_cast import Site

SESSION = "8d3c4b1e-52a7-4f0e-9c1d-7b0a6f2e4d11"
TOKENS = {"coder": "c" * 40, "other": "o" * 40, "reader": "r" * 40, "writer": "w" * 40, "mine": "m" * 40}


def keys(transcripts: Path) -> dict[str, Any]:
    """Keys of two coding agents, one of which may have transcripts read, and keys with one scope each."""
    one = {"token": TOKENS["coder"], "scopes": ["read", "write"], "transcripts": str(transcripts)}
    scopes = {"reader": ["read"], "writer": ["write"], "other": ["read", "write"]}
    mine = {"token": TOKENS["mine"], "scopes": ["read", "write"], "owner": True}
    return {"coder": one, "mine": mine, **{name: {"token": TOKENS[name], "scopes": scopes[name]} for name in scopes}}


def hook(event: str, folder: Path, session: str = SESSION, **fields: object) -> dict[str, object]:
    """A call as Claude Code sends it: the fields of every event, and those of this one."""
    common = {"session_id": session, "cwd": str(folder), "permission_mode": "default", "hook_event_name": event}
    own: dict[str, dict[str, object]] = {
        "SessionStart": {"source": "startup", "model": "claude-sonnet-5"},
        "PreCompact": {"trigger": "auto", "custom_instructions": ""},
        "Stop": {"stop_hook_active": False},
        "SessionEnd": {"reason": "prompt_input_exit"},
    }
    return {**common, **own.get(event, {}), **fields}


def codex(event: str, folder: Path, session: str = SESSION, **fields: object) -> dict[str, object]:
    """A call as Codex sends it."""
    common = {"session_id": session, "transcript_path": None, "cwd": str(folder), "hook_event_name": event}
    return {**common, "model": "gpt-5.6", "permission_mode": "default", "turn_id": "turn-1", **fields}


def repository(folder: Path, remote: str) -> Path:
    """A folder that is a git repository with a remote."""
    (folder / ".git").mkdir(parents=True)
    config = f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {remote}\n\tfetch = +refs/heads/*:refs/remotes/*\n'
    (folder / ".git" / "config").write_text(config, "utf-8")
    return folder


class Transcript:
    """The file of a session as Claude Code writes it: a line for each thing, with an id of its own."""

    def __init__(self, folder: Path, session: str = SESSION) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{session}.jsonl"
        self.session, self._count = session, 0

    def write(self, kind: str, content: object, **fields: object) -> str:
        """Add a line, and return its id."""
        self._count += 1
        uuid = str(UUID(int=self._count))
        message = {"role": kind, "content": content}
        line = {"type": kind, "uuid": uuid, "sessionId": self.session, "isSidechain": False, "message": message}
        self.raw(json.dumps({**line, "version": "2.1.280", **fields}) + "\n")
        return uuid

    def raw(self, text: str) -> None:
        """Add text as it is."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    def turn(self, prompt: str, answer: str, prompt_id: str = "") -> None:
        """A prompt, and all that Claude Code writes until the answer."""
        named = {"promptId": prompt_id} if prompt_id else {}
        self.write("user", prompt, **named)
        self.write("assistant", [{"type": "thinking", "thinking": "a thought that nobody reads"}])
        self.write("assistant", [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}])
        result = [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a noise of a tool"}]
        self.write("user", result, toolUseResult={"stdout": "a noise of a tool"}, **named)
        self.write("user", "a helper was asked this", isSidechain=True)
        self.write("user", "<command-name>/compact</command-name>")
        self.write("user", "a note of the program", isMeta=True)
        self.write("assistant", [{"type": "text", "text": answer}])


def texts(rows: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Role and text of the messages of a transcript."""
    return [(one["role"], one["text"]) for one in rows]


def projects(here: Site) -> Path:
    """The folder of transcripts that the key may have read."""
    return Path(here.instance.config.keys["coder"].transcripts)


async def post(
    here: Site, fields: object, name: str = "coder", agent: str = "claude-code", **headers: str
) -> httpx2.Response:
    """The answer to a hook."""
    sent = {"Authorization": f"Bearer {TOKENS[name]}", "Content-Type": "application/json", **headers}
    body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return await here.client.post(f"/v1/hooks/{agent}", content=body, headers=sent)


async def given(here: Site, fields: dict[str, object], **options: str) -> str:
    """The text that the agent is given."""
    answer = await post(here, fields, **options)
    assert answer.status_code == 200, answer.text
    await here.instance.recorder.catch_up()
    if not (body := answer.json()):
        return ""
    assert list(body) == ["hookSpecificOutput"]
    assert body["hookSpecificOutput"]["hookEventName"] == fields["hook_event_name"]
    return str(body["hookSpecificOutput"]["additionalContext"])


async def stored(here: Site, folder: Path, session: str, agent: str = "claude-code") -> list[tuple[str, str]]:
    """Role and text of all that is stored of a session."""
    conversation = f"{agent}:github.com/acme/{folder.parent.name}#{session}"
    head = {"Authorization": f"Bearer {TOKENS['coder']}"}
    answer = await here.client.get("/v1/lanes", params={"conversation": conversation}, headers=head)
    assert answer.status_code == 200, answer.text
    return texts(answer.json()["messages"])
