"""Two releases at one database: processes are replaced one by one, where those of the former know the newer schema."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running
from tests.migration.files import NEXT, SOURCE
from tests.postgres.server import database

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.sql.scripts import oldest_known

_CONFIG = "models: {chat: none}\nbuffer: {window_ms: 0}\nchannels: {library: {window_ms: 0}}\n"
_ADDED = f"-- works with: {oldest_known('buffer')}\nALTER TABLE message ADD COLUMN mood TEXT;\n"
_ADDED_LATER = f"-- works with: {NEXT['buffer']}\nALTER TABLE message ADD COLUMN weather TEXT;\n"
_RENAMED = "ALTER TABLE placed RENAME COLUMN reason TO why;\n"


@pytest.fixture
def there(place: PostgresPlace) -> Iterator[PostgresPlace]:
    """A database of its own, so that no other test meets the newer schema."""
    with database(place, "upgraded") as made:
        yield made


def newer(folder: Path, *scripts: str) -> str:
    """This program with more migrations of the buffer; returns where Python finds it."""
    shutil.copytree(SOURCE, folder / "keepsaid", ignore=shutil.ignore_patterns("__pycache__"))
    for number, script in enumerate(scripts, NEXT["buffer"]):
        (folder / "keepsaid" / "adapters" / "sql" / "migrations" / f"buffer_{number:04}.sql").write_text(script)
    return f"{folder}{os.pathsep}{SOURCE.parent}"


def homes(place: PostgresPlace, folder: Path, script: str) -> tuple[Program, Program]:
    """A home of this release, which has used the database, and one of a newer release."""
    variables = {"KEEPSAID_STORE__URL": place.url}
    former = Program(folder / "former", variables)
    former.configure(_CONFIG)
    former.run("memory", "add", "My desk is blue")
    shutil.copytree(former.home, folder / "newer")
    return former, Program(folder / "newer", {**variables, "PYTHONPATH": newer(folder / "release", script)})


def number(place: PostgresPlace) -> int:
    """The number of the schema."""
    with psycopg.connect(place.url) as db:
        [(found,)] = db.execute("SELECT version FROM keepsaid.keepsaid_schema WHERE part = 'buffer'")
    return int(found)


def answers(running: Running, text: str) -> str:
    """The state in which a message to a process is settled."""
    body = {"text": text, "sender": "ann", "conversation": text}
    headers = {"Authorization": f"Bearer {running.token}"}
    taken = httpx2.post(f"{running.url}/v1/messages", json=body, headers=headers, timeout=WITHIN_S, verify=False)
    assert taken.status_code == 201, taken.text
    return str(running.settled(taken.json()["id"])["state"])


def test_processes_of_two_releases_share_the_work_while_one_after_another_is_replaced(
    there: PostgresPlace, tmp_path: Path
) -> None:
    former, later = homes(there, tmp_path, _ADDED)
    with former.serving() as old:
        assert answers(old, "before") == "done"
        with later.serving() as new:
            assert number(there) == NEXT["buffer"]
            assert answers(new, "from the newer") == "done"
            assert answers(old, "from the former") == "done"
            old.process.terminate()
            assert old.process.wait(WITHIN_S) == 0
            with former.serving() as again:
                assert answers(again, "from the former, started after the migration") == "done"
            assert answers(new, "alone") == "done"


def test_a_schema_that_the_former_release_does_not_know_waits_until_its_processes_end(
    there: PostgresPlace, tmp_path: Path
) -> None:
    former, later = homes(there, tmp_path, _RENAMED)
    with former.serving() as old:
        _, told = (refused := later.start("serve", "--port", "0")).communicate(timeout=WITHIN_S)
        assert refused.returncode != 0
        assert "processes of an older release work with" in told
        assert number(there) == NEXT["buffer"] - 1
        assert answers(old, "it goes on") == "done"
        old.process.kill()
        old.process.wait(WITHIN_S)
    with later.serving():
        assert number(there) == NEXT["buffer"]
    ran = former.run("serve", "--port", "0", code=None)
    assert (ran.code != 0, "KS-DB-NEWER" in ran.err) == (True, True), ran.err


def test_a_schema_two_releases_later_waits_for_those_who_know_neither(there: PostgresPlace, tmp_path: Path) -> None:
    former, later = homes(there, tmp_path, _ADDED)
    shutil.copytree(former.home, tmp_path / "newest")
    last = Program(
        tmp_path / "newest", {**later.variables, "PYTHONPATH": newer(tmp_path / "last", _ADDED, _ADDED_LATER)}
    )
    with former.serving() as old:
        with later.serving() as new:
            assert answers(new, "from the newer") == "done"
        _, told = (refused := last.start("serve", "--port", "0")).communicate(timeout=WITHIN_S)
        assert refused.returncode != 0
        assert "processes of an older release work with" in told
        assert number(there) == NEXT["buffer"]
        assert answers(old, "it goes on") == "done"
    with last.serving() as newest:
        assert number(there) == NEXT["buffer"] + 1
        with later.serving() as new:
            assert answers(new, "beside the newest") == "done"
            assert answers(newest, "beside the newer") == "done"
