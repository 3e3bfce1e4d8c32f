"""Keys of the release before are read under their names of today, with a warning; the name of today goes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepsaid.config import load
from keepsaid.config.document import Key
from keepsaid.config.section import FORMER
from keepsaid.config.settings import Config

FORMER_FILE = """
buffer: {keys_days: 30, disk_floor_mb: 7}
channels: {http: {in_doubt: give_up}}
memory: {per_leg: 9, pinned_each: 2}
turns: {stop_s: 1.5}
schedules: {at_once: 2, agent_least_s: 60}
collection: {calls_a_day: 11}
"""
FORMER_KEYS: dict[Key, object] = {
    ("buffer", "dedupe_retention_days"): 30,
    ("buffer", "min_free_disk_mb"): 7,
    ("memory", "recall_candidates"): 9,
    ("memory", "pinned_per_kind"): 2,
    ("turns", "shutdown_timeout_s"): 1.5,
    ("schedules", "concurrent_max"): 2,
    ("schedules", "agent_min_interval_s"): 60,
    ("collection", "daily_call_limit"): 11,
}


def read(path: Path, text: str) -> tuple[Config, list[str]]:
    path.write_text(text, "utf-8")
    return load(path)


def test_every_former_key_is_read_and_warned_of(tmp_path: Path) -> None:
    config, warnings = read(tmp_path / "config.yaml", FORMER_FILE)
    assert {key: getattr(getattr(config, key[0]), key[1]) for key in FORMER_KEYS} == FORMER_KEYS
    assert config.channels["http"].on_unknown_delivery == "dead_letter"
    assert len(warnings) == sum(map(len, FORMER.values()))
    assert "turns.stop_s is called turns.shutdown_timeout_s now" in "\n".join(warnings)
    assert sum(f"({tmp_path / 'config.yaml'}:" in warning for warning in warnings) == len(warnings)


def test_the_name_of_today_goes_first(tmp_path: Path) -> None:
    config, _ = read(tmp_path / "config.yaml", "turns: {stop_s: 9, shutdown_timeout_s: 2}\n")
    assert config.turns.shutdown_timeout_s == 2


def test_a_former_variable_is_read_and_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_MEMORY__PER_LEG", "4")
    config, warnings = read(tmp_path / "config.yaml", "")
    assert config.memory.recall_candidates == 4
    assert any("KEEPSAID_MEMORY__RECALL_CANDIDATES now" in warning for warning in warnings), warnings


def test_a_former_variable_goes_before_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_TURNS__STOP_S", "4")
    config, _ = read(tmp_path / "config.yaml", "turns: {shutdown_timeout_s: 2}\n")
    assert config.turns.shutdown_timeout_s == 4


def test_a_former_key_that_is_of_no_use_is_named(tmp_path: Path) -> None:
    _, warnings = read(tmp_path / "config.yaml", "channels: {github: {in_doubt: give_up}}\n")
    assert any("channels.github.on_unknown_delivery is ignored" in warning for warning in warnings), warnings


def test_a_wrong_value_under_a_former_key_names_the_key_of_today(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"turns\.shutdown_timeout_s: .*config\.yaml:1\)"):
        read(tmp_path / "config.yaml", "turns: {stop_s: soon}\n")


def test_a_wrong_value_of_a_former_variable_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_TURNS__STOP_S", "soon")
    with pytest.raises(Exception, match=r"turns\.shutdown_timeout_s: .*environment variable KEEPSAID_TURNS__STOP_S"):
        read(tmp_path / "config.yaml", "")
