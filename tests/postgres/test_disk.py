"""The disk of the server is full: messages are refused with a sentence, and everything acknowledged is answered."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import httpx2
import psycopg
import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.postgres.server import empty

from keepsaid.adapters.postgres.connection import PostgresPlace

_SIZE, _FILLED = 16 << 20, 13 << 20
_TEXT_CHARS = 200_000


@pytest.fixture
def filler(place: PostgresPlace) -> Iterator[Path]:
    """A file that fills most of the small disk which holds the messages; deleted, it gives the space back."""
    empty(place)
    folder = Path(tempfile.mkdtemp(prefix="keepsaid-full-"))
    with psycopg.connect(place.url, autocommit=True) as db:
        [(data,)] = db.execute("SHOW data_directory")
        owner = Path(data).stat()
        options = f"size={_SIZE},mode=0700,uid={owner.st_uid},gid={owner.st_gid}"
        mount = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False
        )
        if mount.returncode:
            pytest.skip("a small disk cannot be mounted here")
        try:
            file = folder / "filler"
            file.write_bytes(b"x" * _FILLED)
            db.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            db.execute("ALTER TABLE keepsaid.message SET TABLESPACE small")
            yield file
            empty(place)
            db.execute("ALTER TABLE keepsaid.message SET TABLESPACE pg_default")
            db.execute("DROP TABLESPACE small")
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def test_a_full_disk_of_the_server_refuses_messages_and_loses_none(
    filler: Path, place: PostgresPlace, tmp_path: Path
) -> None:
    program = Program(tmp_path / "home", {"KEEPSAID_STORE__URL": place.url})
    program.configure("models: {chat: none}\nbuffer: {window_ms: 0}\nchannels: {http: {window_ms: 0}}\n")
    random, acknowledged = Random(3), list[str]()

    def post() -> httpx2.Response:
        text = "".join(random.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=_TEXT_CHARS))
        sent = {"text": text, "sender": "ann", "conversation": f"room {len(acknowledged)}"}
        return httpx2.post(f"{running.url}/v1/messages", json=sent, timeout=WITHIN_S, verify=False)

    with program.serving() as running:
        while (answer := post()).status_code == 201:
            acknowledged.append(answer.json()["id"])
        told = answer.json()
        assert (answer.status_code, told["code"]) == (503, "KS-DB-FULL")
        assert "is full" in told["title"]
        assert len(acknowledged) > 3
        filler.unlink()
        acknowledged.append(post().raise_for_status().json()["id"])
        assert [running.settled(one)["state"] for one in acknowledged] == ["done"] * len(acknowledged)
    listed = program.run("inbox", "ls", "--limit", "100", "--json").json["messages"]
    assert sorted(one["id"] for one in listed) == sorted(acknowledged)
