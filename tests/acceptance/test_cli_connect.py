"""`keepsaid ext connect`: its diff, its question, its removal, and the clients that it writes."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.program import WITHIN_S, Program, Ran, Running, Screen
from tests.unit.agent_hooks_cast import codex, repository

from keepsaid.interfaces.cli import agent_settings

_HOOKS: dict[str, list[dict[str, object]]] = {
    "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
    "UserPromptSubmit": [{"matcher": "", "hooks": [{"type": "http", "url": "http://127.0.0.1:9/other"}]}],
}
_OTHERS = {"model": "opus", "env": {"A": "ü"}, "hooks": _HOOKS}
AGENTS = ("claude-code", "codex", "opencode")
_FILES = {"claude-code": "claude/settings.json", "codex": "codex/hooks.json"}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A home, and beside it the settings of each agent."""
    folders = {"CLAUDE_CONFIG_DIR": "claude", "CODEX_HOME": "codex", "XDG_CONFIG_HOME": "xdg"}
    variables = {name: str(tmp_path / folder) for name, folder in folders.items()}
    return Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none", **variables})


def file_of(program: Program, agent: str) -> Path:
    root = program.home.parent
    return root / _FILES[agent] if agent in _FILES else root / "xdg/opencode/plugins/keepsaid.js"


def written(program: Program, agent: str, text: str) -> Path:
    file = file_of(program, agent)
    file.parent.mkdir(parents=True)
    file.write_text(text, "utf-8")
    return file


def connected(program: Program, agent: str, *options: str, code: int = 0) -> Ran:
    return program.run("ext", "connect", agent, "--yes", *options, code=code)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_hooks_of_others_stay_and_removing_leaves_the_file_as_it_was(
    program: Program, agent: str, indent: int | str
) -> None:
    text = json.dumps(_OTHERS, indent=indent, ensure_ascii=False) + "\n"
    file = written(program, agent, text)
    connected(program, agent)
    now = json.loads(file.read_text("utf-8"))
    assert {name: now[name] for name in ("model", "env")} == {name: _OTHERS[name] for name in ("model", "env")}
    for event, groups in _HOOKS.items():
        assert now["hooks"][event][: len(groups)] == groups
    assert (file.parent / f"{file.name}.before-keepsaid").read_text("utf-8") == text
    before = files_in(program.home.parent)
    again = connected(program, agent)
    assert "already has memory" in again.out
    assert files_in(program.home.parent) == before
    connected(program, agent, "--remove")
    assert file.read_text("utf-8") == text
    assert "holds nothing" in connected(program, agent, "--remove").out


@pytest.mark.parametrize("agent", AGENTS)
def test_removing_leaves_no_file_that_connect_made(program: Program, agent: str) -> None:
    connected(program, agent)
    assert file_of(program, agent).exists()
    assert f"{agent}:" in (program.home / "config" / "config.yaml").read_text("utf-8")
    connected(program, agent, "--remove")
    assert not file_of(program, agent).exists()
    left = {name for name in files_in(program.home.parent) if "hooks" in name or agent in name}
    assert left == set()
    assert "token" not in (program.home / "config" / "config.yaml").read_text("utf-8")


def test_the_diff_shows_what_is_added_and_no_token(program: Program) -> None:
    told = connected(program, "claude-code")
    token = json.loads((program.home / "config" / "hooks" / "claude-code.json").read_text("utf-8"))["token"]
    assert '+            "url": "http://127.0.0.1:7448/v1/hooks/claude-code"' in told.err
    assert token not in told.err + told.out
    hooks = json.loads(file_of(program, "claude-code").read_text("utf-8"))["hooks"]
    assert set(hooks) == {"SessionStart", "UserPromptSubmit", "PreCompact", "Stop", "SessionEnd"}
    assert hooks["SessionStart"][0]["hooks"][0]["type"] == "command", "Claude Code calls no address there"
    assert hooks["Stop"][0]["hooks"][0]["headers"]["Authorization"] == f"Bearer {token}"
    assert "PostToolUse" in connected(program, "claude-code", "--tools").err
    for file in (file_of(program, "claude-code"), program.home / "config" / "hooks" / "claude-code.json"):
        assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("answer", ["y", "n"])
def test_it_asks_at_a_terminal(program: Program, answer: str) -> None:
    ours, theirs = pty.openpty()
    command = program.command("ext", "connect", "codex")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=program.environment) as process:
        os.close(theirs)
        Screen(ours).until(b"[y/N]")
        os.write(ours, f"{answer}\n".encode())
        process.wait(WITHIN_S)
    os.close(ours)
    assert file_of(program, "codex").exists() == (answer == "y")
    assert (program.home / "config" / "config.yaml").exists() == (answer == "y")


def test_without_a_terminal_nothing_is_written_unasked(program: Program) -> None:
    assert "--yes" in program.run("ext", "connect", "codex", code=2).err
    assert not file_of(program, "codex").exists()
    assert not (program.home / "config" / "config.yaml").exists()


@pytest.mark.parametrize(
    "text", ["{broken", "[]", '{"hooks": []}', '{"hooks": {"Stop": "x"}}', '{"hooks": {"S": [1]}}']
)
@pytest.mark.parametrize("options", [(), ("--remove",)])
def test_a_file_of_another_form_is_named_and_nothing_is_written(
    program: Program, text: str, options: tuple[str, ...]
) -> None:
    file = written(program, "claude-code", text)
    told = program.run("ext", "connect", "claude-code", "--yes", *options, code=None)
    assert told.code
    assert str(file) in told.err
    assert "was not changed" in told.err
    assert files_in(program.home.parent) == {"claude/settings.json": text.encode()}


def test_a_plugin_of_somebody_else_stays(program: Program) -> None:
    file = written(program, "opencode", "export const Mine = 1\n")
    assert "not of keepsaid" in connected(program, "opencode", code=4).err
    assert file.read_text("utf-8") == "export const Mine = 1\n"


def test_a_key_that_exists_is_used_and_stays(program: Program) -> None:
    program.configure(json.dumps({"keys": {"mine": {"token": "m" * 40, "sender": "ann"}}, "server": {"port": 9123}}))
    before = (program.home / "config" / "config.yaml").read_bytes()
    connected(program, "claude-code", "--key", "mine")
    text = file_of(program, "claude-code").read_text("utf-8")
    assert "m" * 40 in text
    assert "http://127.0.0.1:9123/v1/hooks" in text
    connected(program, "claude-code", "--key", "mine", "--remove")
    assert (program.home / "config" / "config.yaml").read_bytes() == before


def test_a_port_that_changes_is_refused(program: Program) -> None:
    program.configure("server: {port: 0}\n")
    assert "server.port" in connected(program, "claude-code", code=4).err


def test_settings_of_a_project_are_those_that_others_do_not_read(program: Program, tmp_path: Path) -> None:
    (project := tmp_path / "project").mkdir()
    command = program.command("ext", "connect", "claude-code", "--project", "--yes")
    subprocess.run(command, cwd=project, env=program.environment, check=True, capture_output=True)
    assert [str(one.relative_to(project)) for one in project.rglob("*.json")] == [".claude/settings.local.json"]
    assert not file_of(program, "claude-code").exists()


def client(program: Program, agent: str, fields: dict[str, object], **variables: str) -> tuple[str, float]:
    """The output of the client as an agent starts it, and the seconds that it took."""
    file = program.home / "config" / "hooks" / "keepsaid_hook.py"
    began = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-S", str(file), agent],
        input=json.dumps(fields).encode(),
        capture_output=True,
        env={"PATH": os.environ["PATH"], **variables},
        timeout=WITHIN_S,
        check=True,
    )
    assert ran.stderr == b""
    return ran.stdout.decode(), time.monotonic() - began


def started(running: Running) -> dict[str, str]:
    return {"KEEPSAID_HOOK_URL": running.url}


def test_the_client_brings_prompts_and_answers_and_prints_memory(program: Program, tmp_path: Path) -> None:
    connected(program, "codex")
    folder = repository(tmp_path / "api", "https://github.com/acme/api")
    with program.serving() as running:
        said = codex("UserPromptSubmit", folder, prompt="The staging port is 5544")
        there = started(running)
        assert client(program, "codex", codex("SessionStart", folder, source="startup"), **there)[0] == ""
        assert client(program, "codex", said, **there)[0] == ""
        assert client(program, "codex", codex("Stop", folder, last_assistant_message="Noted."), **there)[0] == ""
        ask = codex("UserPromptSubmit", folder, "another", turn_id="2", prompt="what is the staging port?")
        assert client(program, "codex", ask, KEEPSAID_OFF="1", **there)[0] == ""
        told = json.loads(client(program, "codex", ask, **there)[0])
        assert "5544" in told["hookSpecificOutput"]["additionalContext"]
        wrong = client(
            program, "codex", codex("SessionStart", folder), KEEPSAID_HOOK_TOKEN="x" * 32, **there
        )  # fmt: skip
        assert "keepsaid ext connect codex" in json.loads(wrong[0])["systemMessage"]


def test_a_running_instance_lets_a_key_in_that_is_made_for_an_agent(program: Program, tmp_path: Path) -> None:
    folder = repository(tmp_path / "api", "https://github.com/acme/api")
    with program.serving() as running:
        ran = connected(program, "codex")
        assert "stop it" not in ran.out + ran.err
        said = codex("UserPromptSubmit", folder, prompt="The staging port is 5544")
        assert client(program, "codex", said, **started(running))[0] == ""


def test_the_client_without_an_instance_says_so_once_and_fails_nothing(program: Program, tmp_path: Path) -> None:
    connected(program, "codex")
    nowhere = {"KEEPSAID_HOOK_URL": "http://127.0.0.1:9"}
    told, took_s = client(program, "codex", codex("SessionStart", tmp_path), **nowhere)
    assert json.loads(told) == {"systemMessage": "memory not running: keepsaid serve"}
    assert took_s >= 2
    for event in ("UserPromptSubmit", "Stop"):
        assert client(program, "codex", codex(event, tmp_path, prompt="x"), **nowhere)[0] == ""
    for broken in ("http://", "nonsense", "http://127.0.0.1:port"):
        assert client(program, "codex", codex("Stop", tmp_path), KEEPSAID_HOOK_URL=broken)[0] == ""


_NODE = """
import { KeepsaidPlugin } from "./keepsaid.mjs"
const [folder, prompt] = process.argv.slice(2)
const said = (role, id, text) => ({ info: { id, role }, parts: [{ type: "text", text }] })
const messages = [said("user", "msg_1", prompt), said("assistant", "msg_2", "Noted.")]
const client = { session: { messages: async () => ({ data: messages }) } }
const hooks = await KeepsaidPlugin({ client, directory: folder })
const output = { message: { id: "msg_1" }, parts: [{ id: "prt_1", type: "text", text: prompt }] }
const compacting = { context: [] }
for (let n = 0; n < 2; n++) {
  await hooks["chat.message"]?.({ sessionID: "ses_" + prompt.length }, output)
  await hooks["experimental.session.compacting"]?.({ sessionID: "ses_1" }, compacting)
  await hooks.event?.({ event: { type: "session.idle", properties: { sessionID: "ses_" + prompt.length } } })
  await hooks.event?.({ event: { type: "session.updated", properties: {} } })
}
console.log(JSON.stringify({ parts: output.parts, context: compacting.context }))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed: the plugin for OpenCode is not run")
def test_the_plugin_for_opencode_brings_prompts_and_answers_and_adds_memory(program: Program, tmp_path: Path) -> None:
    connected(program, "opencode")
    folder = repository(tmp_path / "api", "https://github.com/acme/api")
    (tmp_path / "keepsaid.mjs").write_text(file_of(program, "opencode").read_text("utf-8"), "utf-8")
    (tmp_path / "run.mjs").write_text(_NODE, "utf-8")

    def parts(prompt: str, **variables: str) -> list[dict[str, Any]]:
        environment = {"PATH": os.environ["PATH"], **variables}
        command = ["node", "run.mjs", str(folder), prompt]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment, check=True, timeout=WITHIN_S)
        return list(json.loads(ran.stdout)["parts"])

    ask = "what is the staging port called?"
    assert len(parts(ask)) == 1, "nothing runs yet"
    with program.serving() as running:
        stored = program.home / "config" / "hooks" / "opencode.json"
        stored.write_text(json.dumps({**json.loads(stored.read_text("utf-8")), "url": running.url}), "utf-8")
        assert len(parts("The staging port is 5544")) == 1
        assert len(parts(ask, KEEPSAID_OFF="1")) == 1
        found = parts(ask)
        assert found[1]["synthetic"]
        assert "5544" in found[1]["text"]
        kept = [one["text"] for one in program.run("memory", "ls", "--json").json["memories"]]
    assert sum("5544" in text for text in kept) == 1
    assert kept.count("Noted.") == 2, "one in each session that was idle"


def test_the_plugin_has_the_hooks_that_connect_writes() -> None:
    folder = Path(agent_settings.__file__).parent / "agents"
    assert json.loads((folder / ".claude-plugin" / "plugin.json").read_text("utf-8"))["name"] == "keepsaid"
    plugin = json.loads((folder / "hooks" / "hooks.json").read_text("utf-8"))["hooks"]
    wanted = agent_settings.claude_hooks("http://127.0.0.1:7448", "$KEEPSAID_HOOK_TOKEN", folder / "x", tools=False)
    assert plugin.keys() == wanted.keys()
    for event in plugin.keys() - {"SessionStart"}:
        [ours], [theirs] = (hooks[event][0]["hooks"] for hooks in (wanted, plugin))
        assert {**theirs, "timeout": 0, "allowedEnvVars": 0} == {**ours, "timeout": 0, "allowedEnvVars": 0}
