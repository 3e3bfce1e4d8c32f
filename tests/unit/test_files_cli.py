"""Files at the command line: listed with their message, and written to the disk."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from tests.unit.http_cast import site
from tests.unit.test_files import file_rows, home
from tests.unit.test_telegram import until

from keepsaid.domain.files import handle_of
from keepsaid.interfaces.cli.program import run
from keepsaid.testing.providers.kept_files import PNG
from keepsaid.testing.providers.telegram import TelegramServer


async def life(root: Path) -> tuple[str, str]:
    """A home in which a picture was kept and a file was left; their handles."""
    async with TelegramServer() as telegram, site(root, **home(telegram, bytes_max=1_000)) as at:
        telegram.send_file("photo", PNG, "who is this?")
        await file_rows(at, "kept")
        telegram.send_file("document", bytes(2_000), file_name="big\x1b[31m.bin")
        await file_rows(at, "left")
        first, second = await until(at, "SELECT message_id FROM file ORDER BY message_id")
        return handle_of(first[0], 1), handle_of(second[0], 1)


def test_a_file_is_listed_and_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept, left = asyncio.run(life(tmp_path / "home"))
    at = ["--home", str(tmp_path / "home"), "inbox"]
    capfd.readouterr()
    assert run([*at, "show", kept.partition("/")[0]]) == 0
    assert f"{kept} is kept: photo (image/png, {len(PNG)} bytes)" in capfd.readouterr().out
    assert run([*at, "show", left.partition("/")[0], "--json"]) == 0
    [file] = json.loads(capfd.readouterr().out)["files"]
    assert (file["file"], file["state"], file["reason"]) == (left, "left", "it is larger than 0.001 MB")
    assert run([*at, "show", left.partition("/")[0]]) == 0
    assert "\x1b" not in capfd.readouterr().out
    out = tmp_path / "photo.png"
    assert run([*at, "file", kept, "--out", str(out)]) == 0
    assert out.read_bytes() == PNG
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("handle", "out", "said"),
    [
        ("kept", "there", "is there already"),
        ("kept", "no/such/folder", "cannot be written"),
        ("left", "new", "is not kept: it is larger than 0.001 MB"),
        ("msg_0000000000001/1", "new", "there is no file"),
        ("photo.png", "new", "is not the name of a file"),
    ],
)
def test_what_cannot_be_written_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], handle: str, out: str, said: str
) -> None:
    """And nothing is written over."""
    kept, left = asyncio.run(life(tmp_path / "home"))
    (tmp_path / "there").write_text("mine", "utf-8")
    given = {"kept": kept, "left": left}.get(handle, handle)
    capfd.readouterr()
    assert run(["--home", str(tmp_path / "home"), "inbox", "file", given, "--out", str(tmp_path / out)]) != 0
    assert said in capfd.readouterr().err
    assert (tmp_path / "there").read_text("utf-8") == "mine"
    assert not (tmp_path / "new").exists()
