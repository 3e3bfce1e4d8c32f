"""`keepsaid init`: a model that really replies is saved, and what the owner wrote is never lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.program import Program, Ran, inside

from keepsaid.testing.model_script import Refuse, Say, Script
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
