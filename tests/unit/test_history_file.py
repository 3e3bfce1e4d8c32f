"""The history of typed lines loses what is forgotten, and nothing else; a chat that runs does not bring it back."""

from __future__ import annotations

import stat
from pathlib import Path

from prompt_toolkit.history import FileHistory

from keepsaid.adapters.system.files import HistoryFile
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import Kind, NewMemory, Source, person_scope
from keepsaid.domain.message import Trust

_KEPT = ("the train leaves at nine", "two\nlines", "+ plus and # hash")
_GONE = "my code is\nzebraquix7741"


async def test_only_entries_that_hold_it_are_removed(tmp_path: Path) -> None:
    file = tmp_path / "history"
    history = FileHistory(str(file))
    for line in (_KEPT[0], _GONE, *_KEPT[1:]):
        history.store_string(line)
    assert await HistoryFile(file).forget(lambda text: "zebraquix7741" in text) == 1
    assert b"zebraquix" not in file.read_bytes()
    assert list(FileHistory(str(file)).load_history_strings()) == list(reversed(_KEPT))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    history.store_string("later")
    assert next(iter(FileHistory(str(file)).load_history_strings())) == "later", (
        "a chat that runs goes on with the file"
    )
    assert b"zebraquix" not in file.read_bytes()


async def test_a_home_without_a_history_has_nothing_to_lose(tmp_path: Path) -> None:
    assert await HistoryFile(tmp_path / "history").forget(bool) == 0
    assert not (tmp_path / "history").exists()


async def test_forgetting_reaches_the_history_and_counts_its_lines(tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    async with opened(home, Config()) as instance:
        history = FileHistory(str(home.typed_file))
        for line in ("my code is Zebraquix7741", "the train leaves at nine"):
            history.store_string(line)
        scope, source = person_scope("owner"), (Source("note", "a"),)
        note = NewMemory("a", Kind.FACT, "my code is Zebraquix7741", scope, Trust.OWNER, sources=source)
        await instance.memories.keep([note], 5)
        done = await instance.services.forgetting.forget_selected(ForgetSelector(text="zebraquix"), "owner")
        assert done is not None
        assert (done.state, dict(done.counts)["lines"]) == ("done", 1)
        assert list(history.load_history_strings()) == ["the train leaves at nine"]
