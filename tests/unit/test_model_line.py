"""The model line: one place of a config file changes, in every form a file can have."""

from __future__ import annotations

import pytest
import yaml

from keepsaid.interfaces.cli.config import with_model


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", "models:\n  chat: ollama/qwen3:8b\n"),
        ("# mine\n", "# mine\nmodels:\n  chat: ollama/qwen3:8b\n"),
        ("log: {level: debug}", "log: {level: debug}\nmodels:\n  chat: ollama/qwen3:8b\n"),
        ("models:\n  # a\n  chat: none # b\n", "models:\n  # a\n  chat: ollama/qwen3:8b # b\n"),
        ("models: {base_url: x} # a\n", "models: {chat: ollama/qwen3:8b, base_url: x} # a\n"),
        ("models: {}\nlog: {}\n", "models: {chat: ollama/qwen3:8b}\nlog: {}\n"),
        ("models:\nlog: {}\n", "models:\n  chat: ollama/qwen3:8b\nlog: {}\n"),
        ("models:\n  chat:\n  base_url: x\n", "models:\n  chat: ollama/qwen3:8b\n  base_url: x\n"),
        ("models: # a\r\n    base_url: x\r\n", "models: # a\r\n    chat: ollama/qwen3:8b\n    base_url: x\r\n"),
    ],
)
def test_one_line_changes(text: str, written: str) -> None:
    assert with_model(text, "ollama/qwen3:8b") == written


@pytest.mark.parametrize(
    "text",
    ["{log: {level: debug}}", "---\nlog: {level: debug}\n...\n", "\ufeffmodels: {chat: none}\nlog: {level: debug}\n"],
)
@pytest.mark.parametrize("name", ["openai/tiny", "openai/with: colon", "openai/with #", "none"])
def test_a_form_without_a_place_for_one_line_keeps_its_settings(text: str, name: str) -> None:
    assert yaml.safe_load(with_model(text, name)) == {"log": {"level": "debug"}, "models": {"chat": name}}
