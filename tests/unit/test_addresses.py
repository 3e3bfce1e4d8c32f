"""A password inside an address is shown nowhere: not by `config show`, nor by what names the address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, SecretStr

from keepsaid.adapters.models.choose import found
from keepsaid.config import Config
from keepsaid.interfaces.cli.program import run
from keepsaid.text.normal import without_passwords

PASSWORD = "pier-7-lantern"  # gitleaks:allow
SECRET_KEY = "55" * 31 + "12"
ADDRESS = f"http://me:{PASSWORD}@models.test/v1"
SETTINGS: dict[str, Any] = {
    "models": {"chat": "openai/some", "base_url": ADDRESS, "api_key": PASSWORD},
    "memory": {"embedder_url": ADDRESS, "embedder_key": PASSWORD},
    "files": {"transcriber_url": ADDRESS, "transcriber_key": PASSWORD},
    "store": {"redis": f"redis://me:{PASSWORD}@cache.test"},
    "server": {"token": PASSWORD, "operator_token": PASSWORD * 3},
    "channels": {"github": {"secret": PASSWORD}},
    "telegram": {"token": f"4711:{PASSWORD}"},
    "discord": {"token": f"NDcxMQ.{PASSWORD}.{PASSWORD}"},
    "nostr": {"secret_key": SECRET_KEY},
    "matrix": {"token": PASSWORD},
    "email": {"password": PASSWORD, "smtp_password": PASSWORD},
    "slack": {"bot_token": f"xoxb-{PASSWORD}", "app_token": f"xapp-{PASSWORD}", "signing_secret": PASSWORD},
    "openai": {"proxies": {"gpt": {"base_url": ADDRESS, "model": "some", "key": PASSWORD}}},
    "tools": {"mcp": {"files": {"url": f"https://me:{PASSWORD}@tools.test/mcp", "headers": {"x-key": PASSWORD}}}},
}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://bob:pw@example.org/a", "https://bob:**********@example.org/a"),
        ("see https://:p:w@x and redis://u:p@y", "see https://:**********@x and redis://u:**********@y"),
        ("https://example.org:8443/a@b", "https://example.org:8443/a@b"),
        ("https://bob@example.org", "https://bob@example.org"),
        ("https://bob:p@w@example.org", "https://bob:**********@example.org"),
    ],
)
def test_an_address_is_shown_without_its_password(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def _secret_keys(model: type[BaseModel], at: tuple[str, ...] = ()) -> Iterator[str]:
    """The key of every setting that is declared as a secret."""
    for name, field in model.model_fields.items():
        kind = str(field.annotation)
        inner = [one for one in (field.annotation, *getattr(field.annotation, "__args__", ())) if isinstance(one, type)]
        if SecretStr.__name__ in kind:
            yield ".".join((*at, name))
        for one in inner:
            if issubclass(one, BaseModel):
                yield from _secret_keys(one, (*at, name))


def test_every_setting_that_is_a_secret_is_planted_here() -> None:
    """A new one has to be planted, too."""
    keys = {key.rpartition(".")[2] for key in _secret_keys(Config)}
    planted = json.dumps(SETTINGS)
    assert keys >= {"api_key", "secret", "token", "embedder_key"}
    assert {key for key in keys if f'"{key}"' not in planted} <= {"env"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["config", "show"],
        ["config", "validate"],
        ["doctor", "--offline"],
        ["status"],
        ["tools", "ls"],
        ["models", "ls"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"], ["-v"]])
def test_no_command_prints_a_secret_of_the_config(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], form: list[str]
) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(SETTINGS), "utf-8")
    assert run(["--home", str(tmp_path), *arguments, *form]) in (0, 5, 6)
    told = "".join(capfd.readouterr())
    assert told
    assert PASSWORD not in told
    assert SECRET_KEY not in told


@pytest.mark.parametrize("form", [[], ["--json"], ["-v"]])
def test_a_setting_that_is_refused_is_not_quoted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], form: list[str]
) -> None:
    """Neither a secret of a wrong type, nor an address where a number belongs."""
    folder = tmp_path / "config"
    folder.mkdir()
    for wrong in (
        {"server": {"token": [PASSWORD]}},
        {"server": {"port": ADDRESS}},
        {"models": {"api_key": {"a": PASSWORD}}},
    ):
        (folder / "config.yaml").write_text(yaml.safe_dump(wrong), "utf-8")
        assert run(["--home", str(tmp_path), "status", *form]) == 4
        assert PASSWORD not in "".join(capfd.readouterr())


def test_a_model_at_hand_is_named_without_the_password() -> None:
    assert PASSWORD not in "".join(one.how for one in found(Config(**SETTINGS).models, {}))
