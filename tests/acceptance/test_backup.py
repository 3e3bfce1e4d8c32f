"""A backup taken beside a runtime under load is a consistent prefix of what was said, and whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running, inside

_PEOPLE = 4
_BEFORE = 25
"""How much each has said before the backup begins."""

_NUMBERED = """
SELECT lane.id, head, count(*), min(number), max(number) FROM lane JOIN message ON lane_id = lane.id GROUP BY lane.id
"""
_SAID = """
SELECT conversation, text FROM message JOIN lane ON lane.id = lane_id ORDER BY conversation, number
"""


class Person:
    """Says 0, 1, 2, ... in a room of its own, each once the one before is acknowledged."""

    def __init__(self, name: str, server: Running) -> None:
        self.name = name
        self.acknowledged = 0
        self.warm = threading.Event()
        self._server = server

    def talk(self, enough: threading.Event) -> None:
        """Until it is enough."""
        try:
            self._talk(enough)
        finally:
            self.warm.set()

    def _talk(self, enough: threading.Event) -> None:
        headers = {"Authorization": f"Bearer {self._server.token}"}
        with httpx2.Client(
            base_url=self._server.url, headers=headers, timeout=WITHIN_S, verify=False, trust_env=False
        ) as client:
            while not enough.is_set():
                said = {"sender": self.name, "conversation": self.name, "text": str(self.acknowledged)}
                client.post("/v1/messages", json=said).raise_for_status()
                self.acknowledged += 1
                if self.acknowledged == _BEFORE:
                    self.warm.set()


@contextmanager
def talking(server: Running) -> Iterator[list[Person]]:
    """People who talk all the time, and have done so for a while."""
    people, enough = [Person(f"person {n}", server) for n in range(_PEOPLE)], threading.Event()
    with ThreadPoolExecutor(_PEOPLE) as pool:
        ends = [pool.submit(person.talk, enough) for person in people]
        try:
            for person, end in zip(people, ends, strict=True):
                assert person.warm.wait(WITHIN_S), person.acknowledged
                assert not end.done() or end.exception() is None
            yield people
        finally:
            enough.set()
        for end in ends:
            end.result(WITHIN_S)


def rows(home: Path, statement: str) -> list[tuple[object, ...]]:
    """What the operational store of a home says."""
    db = apsw.Connection(str(home / "data" / "buffer.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(statement).fetchall()
    finally:
        db.close()


def said_in(home: Path) -> dict[str, list[str]]:
    """What each person said, in order of the numbers."""
    heard: dict[str, list[str]] = {}
    for name, text in rows(home, _SAID):
        heard.setdefault(str(name), []).append(str(text))
    return heard


def test_a_backup_under_load_is_a_consistent_prefix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "home", {"KEEPSAID_BUFFER__WINDOW_MS": "20"})
    made, restored = tmp_path / "made", tmp_path / "restored"
    with program.serving() as server, talking(server) as people:
        before = {person.name: person.acknowledged for person in people}
        program.run("data", "backup", str(made))
        after = {person.name: person.acknowledged for person in people}
    inside(program, capsys, "data", "restore", str(made), "--to", str(restored))
    heard = said_in(restored)
    assert heard.keys() == before.keys()
    for name, texts in heard.items():
        assert texts == [str(n) for n in range(len(texts))], f"{name}: a prefix"
        assert before[name] <= len(texts) <= after[name] + 1
    assert sum(map(len, heard.values())) < sum(map(len, said_in(program.home).values())), "they went on talking"
    for lane, head, count, first, last in rows(restored, _NUMBERED):
        assert (first, last, count) == (1, head, head), lane
    found = inside(Program(restored), capsys, "doctor", "--deep", "--offline", "--json").json["findings"]
    assert [one for one in found if one["level"] not in ("ok", "info")] == []
    assert sum("nothing astray" in one["what"] for one in found) == 2
