"""`keepsaid init`: a model that really replies is saved, and what the owner wrote is never lost."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.program import WITHIN_S, Program, Ran, Screen, inside

from keepsaid.testing.model_script import BAD_KEY, Refuse, Say, Script
from keepsaid.testing.model_server import ThreadedModelServer


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A home that does not exist yet."""
    return Program(tmp_path / "home")


def config_of(program: Program) -> str:
    return (program.home / "config/config.yaml").read_text("utf-8")


def initialised(program: Program, code: int = 0) -> Ran:
    return program.run("init", "--non-interactive", "--json", code=code)


def test_a_model_is_tried_before_it_is_saved_and_then_answers(
    fresh: Program, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh.configure("log: {level: debug}\n")
    with ThreadedModelServer(Script(Refuse(401), default=Say("It is on shelf 42."))) as server:
        program = Program(fresh.home, {"OPENAI_API_KEY": "k", "KEEPSAID_MODELS__BASE_URL": server.url})
        for name, value in program.variables.items():
            monkeypatch.setenv(name, value)
        refused = inside(program, capsys, "init", "--model", "openai/tiny", code=1)
        assert "refused the key" in refused.err
        assert (fresh.home / "config/config.yaml").read_text("utf-8") == "log: {level: debug}\n"
        assert inside(program, capsys, "init", "--model", "openai/tiny", "--json").json["model"] == "openai/tiny"
        assert "level: debug" in (fresh.home / "config/config.yaml").read_text("utf-8")
        assert (fresh.home / "config/config.yaml.bak").exists()
        assert (fresh.home / "config/agents/main/SOUL.md").exists()
        assert program.run("chat", given="Where is it?\n").out == "It is on shelf 42.\n\n"


def test_init_works_without_a_model(fresh: Program, capsys: pytest.CaptureFixture[str]) -> None:
    made = fresh.run("init", "--non-interactive")
    assert "No model is set" in made.err
    assert "Next:  keepsaid chat" in made.err
    assert inside(fresh, capsys, "init", "--model", "none", "--json").json["model"] == "none"
    assert "chat: auto" in (fresh.home / "config/config.yaml.bak").read_text("utf-8")


def test_the_model_that_is_set_stays_when_it_replies(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        text = f"# mine\nmodels:\n  chat: openai/own-model  # the good one\n  base_url: {server.url}\n"
        fresh.configure(text)
        program = Program(fresh.home, {"ANTHROPIC_API_KEY": "of-another"})
        assert initialised(program).json["model"] == "openai/own-model"
        assert [request.model for request in server.requests] == ["openai/own-model".partition("/")[2]]
    assert config_of(fresh) == text


def test_the_model_that_is_set_stays_when_nothing_replies(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Refuse(401))) as server:
        text = f"models: {{chat: openai/own-model, base_url: '{server.url}'}}  # mine\n"
        fresh.configure(text)
        ran = initialised(Program(fresh.home, {"OPENAI_API_KEY": "k"}), code=1)
    assert ran.json["model"] == "openai/own-model"
    assert "models.chat stays openai/own-model" in ran.err
    assert config_of(fresh) == text
    assert not (fresh.home / "config/config.yaml.bak").exists()
    assert (fresh.home / "config/agents/main/SOUL.md").exists()


def test_none_stays_none_where_no_model_is_at_hand(fresh: Program) -> None:
    fresh.configure("models: {chat: none}\n")
    assert initialised(fresh).json["model"] == "none"
    assert config_of(fresh) == "models: {chat: none}\n"


def test_comments_stay_when_another_model_is_saved(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        fresh.configure(f"# mine\nmodels:\n  base_url: {server.url}  # here\nlog: {{level: debug}}\n")
        assert fresh.run("init", "--model", "openai/tiny", "--json").json["model"] == "openai/tiny"
        saved = f"# mine\nmodels:\n  chat: openai/tiny\n  base_url: {server.url}  # here\nlog: {{level: debug}}\n"
    assert config_of(fresh) == saved


def test_variables_that_must_stay_set_are_named(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        program = Program(fresh.home, {"OLLAMA_HOST": server.url.removesuffix("/v1")})
        ran = program.run("init", "--model", "ollama/tiny")
    assert "OLLAMA_HOST must be set in the environment of keepsaid" in ran.err
    assert config_of(fresh) == "models:\n  chat: ollama/tiny\n"


# By options: a URL, a key


def keys_sent(server: ThreadedModelServer) -> set[str]:
    return {request.headers["authorization"] for request in server.requests}


def test_the_base_url_that_was_tested_is_written(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Say("It is on shelf 42."))) as server:
        here = {"KEEPSAID_MODELS__BASE_URL": server.url, "OPENAI_API_KEY": "for-openai-alone"}
        ran = Program(fresh.home, here).run("init", "--model", "openai/qwen3", "--json")
        assert ran.json["environment"] == []
        assert f'base_url: "{server.url}"' in config_of(fresh)
        assert len(server.requests) == 2, "before and after the file was written"
        assert keys_sent(server) == {"Bearer no-key-needed"}
        assert fresh.run("chat", given="Where is it?\n").out == "It is on shelf 42.\n\n"


def test_a_server_with_one_model_needs_no_name(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        ran = fresh.run("init", "--base-url", server.url.removesuffix("/v1"), "--json")
        assert ran.json["model"] == "openai/scripted"
    assert config_of(fresh) == f'models:\n  chat: openai/scripted\n  base_url: "{server.url}"\n'


def test_a_key_of_a_variable_is_written_as_the_variable(fresh: Program) -> None:
    fresh.configure("models: {chat: openai/tiny, api_key: of-before}  # mine\n")
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        program = Program(fresh.home, {"MY_KEY": "wick-1234567"})
        ran = program.run("init", "--base-url", server.url, "--key-env", "MY_KEY")
        assert keys_sent(server) == {"Bearer wick-1234567"}
        assert "wick-1234567" not in ran.out + ran.err + config_of(fresh)
        assert 'api_key: "${MY_KEY}"' in config_of(fresh)
        assert "# mine" in config_of(fresh)
        program.run("chat", "-m", "hello")
    unset = fresh.run("init", "--base-url", server.url, "--model", "openai/tiny", "--key-env", "MY_KEY", code=4)
    assert "the environment variable MY_KEY is not set" in unset.err


def test_a_key_of_stdin_is_kept_in_a_file_of_its_own(fresh: Program) -> None:
    file = fresh.home / "config/model.key"
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        ran = fresh.run("init", "--base-url", server.url, "--key-file", "-", given="wick-1234567\n")
        assert keys_sent(server) == {"Bearer wick-1234567"}
        assert f"wrote  {file}" in ran.out
        assert "wick-1234567" not in ran.out + ran.err + config_of(fresh)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        shown = fresh.run("config", "show", "models", "--json")
        assert "wick-1234567" not in shown.out
        fresh.run("chat", "-m", "hello")
        assert keys_sent(server) == {"Bearer wick-1234567"}


def test_a_key_goes_to_no_other_server_than_its_own(fresh: Program) -> None:
    with ThreadedModelServer(Script(default=Say("ready"))) as server:
        fresh.configure("models: {chat: anthropic/some, api_key: for-anthropic-alone}\n")
        fresh.run("init", "--base-url", server.url)
        assert keys_sent(server) == {"Bearer no-key-needed"}
    assert "for-anthropic-alone" not in config_of(fresh)


def test_the_address_and_the_key_stay_when_no_model_is_used(fresh: Program) -> None:
    fresh.configure("models: {chat: openai/x, base_url: 'http://127.0.0.1:9/v1', api_key: kept}\n")
    fresh.run("init", "--model", "none")
    assert config_of(fresh) == "models: {chat: none, base_url: 'http://127.0.0.1:9/v1', api_key: kept}\n"


def test_the_former_file_is_put_back_when_the_written_one_gives_no_reply(fresh: Program) -> None:
    text = "# mine\nlog: {level: debug}\n"
    fresh.configure(text)
    with ThreadedModelServer(Script(Say("ready"), default=BAD_KEY)) as server:
        ran = fresh.run("init", "--base-url", server.url, "--key-file", "-", given="wick-1234567", code=1)
    assert "the written config failed its test: openai/scripted refused the key" in ran.err
    assert "Nothing was saved; the former config was put back." in ran.err
    assert config_of(fresh) == text
    assert sorted(one.name for one in (fresh.home / "config").iterdir()) == ["config.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "gpt"), "openai/NAME, anthropic/NAME, ollama/NAME, none"),
        (("--model", "openai/"), "'openai/' is not one of"),
        (("--base-url", "localhost:1234"), "'localhost:1234' is not a URL such as http://127.0.0.1:1234/v1"),
        (("--base-url", "http://127.0.0.1:9", "--model", "ollama/x"), "only openai/NAME has a base URL"),
        (("--key-env", "A", "--key-file", "b"), "exclude each other"),
        (("--key-env", "A", "--model", "none"), "no use for a key"),
    ],
)
def test_options_that_name_no_model_are_refused_before_any_test(
    fresh: Program, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    ran = inside(fresh, capsys, "init", *arguments, code=2)
    assert said in ran.err
    assert "Nothing was done." in ran.err
    assert "testing" not in ran.err
    assert not fresh.home.exists()


@pytest.mark.parametrize(
    ("arguments", "said", "hint"),
    [
        (("--model", "ollama/qwen3"), "cannot be reached", "start Ollama"),
        (("--model", "openai/x", "--base-url", "http://127.0.0.1:9/v1"), "cannot be reached", "http://127.0.0.1:9/v1"),
        (("--base-url", "http://127.0.0.1:9/v1"), "gives no list of models", "--model openai/NAME"),
        (("--model", "openai/x"), "needs a key: OPENAI_API_KEY is not set", "--key-env NAME"),
        (("--model", "openai/x", "--key-env", "UNSET"), "UNSET is not set", "export it"),
        (("--key-file", "-"), "this is not a key", "keepsaid init --help"),
    ],
)
def test_a_model_that_cannot_be_used_saves_nothing_and_no_message_is_spoken_of(
    fresh: Program, arguments: tuple[str, ...], said: str, hint: str
) -> None:
    ran = Program(fresh.home, {"OLLAMA_HOST": "127.0.0.1:9"}).run("init", *arguments, code=1)
    assert said in ran.err
    assert "Nothing was saved" in ran.err
    assert hint in ran.err.partition("try")[2]
    assert "message" not in ran.err
    assert not (fresh.home / "config/config.yaml").exists()


# On a terminal


def test_a_person_gives_a_url_and_a_key_that_is_never_shown(fresh: Program) -> None:
    with ThreadedModelServer(Script(BAD_KEY, default=Say("ready"))) as server:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            fresh.command("init"),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**fresh.environment, "OLLAMA_HOST": "127.0.0.1:9"},
            start_new_session=True,
        )
        os.close(theirs)
        screen, shown = Screen(ours), b""
        try:
            for wanted, typed in (
                (b"Use for chat?", "nothing"),
                (b"'nothing' is not a choice", ""),
                (b"Use for chat?", "server"),
                (b"Base URL", "localhost"),
                (b"is not a URL of a server", ""),
                (b"Base URL", server.url),
                (b"Key, not shown", "wick-wrong"),
                (b"Which model?", "1"),
                (b"gave no reply", ""),
                (b"Use for chat?", "server"),
                (b"Base URL", server.url),
                (b"Key, not shown", "wick-1234567"),
                (b"Which model?", "openai/scripted"),
                (b"as written replied in", ""),
                (b"Find memories by meaning too?", "n"),
                (b"To talk to it on Telegram", "nonsense"),
                (b"this is not a token for telegram", ""),
            ):
                shown += screen.until(wanted)
                if typed:
                    shown += screen.until(b": ")
                    os.write(ours, f"{typed}\r".encode())
            shown += screen.until(b"keepsaid chat\r\n")
            assert process.wait(WITHIN_S) == 0
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        assert keys_sent(server) == {"Bearer wick-wrong", "Bearer wick-1234567"}
    assert b"wick-" not in shown
    assert (fresh.home / "config/model.key").read_text("utf-8") == "wick-1234567\n"
    saved = f'models:\n  chat: openai/scripted\n  base_url: "{server.url}"\n  api_key: "${{file:model.key}}"\n'
    assert config_of(fresh) == saved
