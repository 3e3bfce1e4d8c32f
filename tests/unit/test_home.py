"""The home: where it lies, whom its directories are for, and what is told when there can be none."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepsaid.config import Home
from keepsaid.errors import HomeError


def folders(home: Home) -> tuple[Path, ...]:
    return home.config, home.data, home.state, home.cache, home.run


def test_everything_lies_under_keepsaid_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_HOME", str(tmp_path / "by variable"))
    home = Home.at()
    names = ("config", "data", "state", "cache", "run")
    assert folders(home) == tuple(tmp_path / "by variable" / name for name in names)
    assert Home.at(tmp_path / "named").config_file == tmp_path / "named" / "config" / "config.yaml"
    assert home.store("buffer.db") == home.data / "buffer.db"
    assert home.store(str(tmp_path / "x.db")) == tmp_path / "x.db"
    assert home.agent("main") == home.config / "agents" / "main"


def test_a_home_may_be_named_by_tilde_or_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert Home.at(Path("~/k")) == Home.at(tmp_path / "k") == Home.at(Path("k"))
    assert Home.at().store("~/x.db") == tmp_path / "x.db"


def test_without_a_name_the_home_is_where_xdg_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSAID_HOME", "")
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    homes = (tmp_path / name / "keepsaid" for name in ("config", "data", "state", "cache"))
    assert folders(Home.at()) == (*homes, tmp_path / "state" / "keepsaid" / "run")


@pytest.fixture
def umask() -> Iterator[None]:
    """The widest."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_directories_are_for_their_owner_alone(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "deep" / "home")
    home.data.mkdir(parents=True, mode=0o755)
    home.make()
    home.make()
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders(home)} == {0o700}


def test_a_file_in_place_of_a_directory_is_told(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.data.write_text("not a directory")
    with pytest.raises(HomeError) as caught:
        home.make()
    assert caught.value.what == f"{home.data} cannot be made (File exists)"
    assert home.data.read_text() == "not a directory"


def test_a_place_where_nothing_can_be_written_is_told() -> None:
    with pytest.raises(HomeError, match="/proc/keepsaid/config cannot be"):
        Home.at(Path("/proc/keepsaid")).make()
