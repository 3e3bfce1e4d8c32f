"""The file of tombstones: whole lines, an incomplete last one, damage, and removal."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from keepsaid.adapters.sql.tombstone_file import TombstoneFile
from keepsaid.errors import StoreError

_HASHES = [bytes([n]) * 16 for n in range(4)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with three tombstones."""
    path = tmp_path / "forgotten.hashes"
    TombstoneFile(path).add(_HASHES[:3])
    return path


def test_tombstones_are_read_back_and_written_once(path: Path) -> None:
    before = path.read_bytes()
    TombstoneFile(path).add([*_HASHES[:2], _HASHES[1]])
    assert path.read_bytes() == before
    TombstoneFile(path).add([_HASHES[3], _HASHES[3]])
    assert path.read_bytes().startswith(before)
    assert len(path.read_bytes().splitlines()) == 4
    assert TombstoneFile(path).read() == frozenset(_HASHES)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("cut", range(1, 42))
def test_an_incomplete_last_line_is_left_out_and_written_again(
    path: Path, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert TombstoneFile(path).read() == frozenset(_HASHES[:2])
    assert not caplog.records, "a crash while it is written leaves that"
    TombstoneFile(path).add([_HASHES[2], _HASHES[3]])
    assert TombstoneFile(path).read() == frozenset(_HASHES)
    assert all(len(line) == 40 for line in path.read_bytes().splitlines())


@pytest.mark.parametrize("damage", [b"f", b"\0", b"\n", b"\xff", b" ", b"A"])
@pytest.mark.parametrize("at", [41, 60, 75])
def test_a_damaged_line_is_logged_and_left_out(
    path: Path, damage: bytes, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole = bytearray(path.read_bytes())
    if whole[at : at + 1] == damage:
        damage = b"e"
    whole[at : at + 1] = damage
    path.write_bytes(bytes(whole))
    with caplog.at_level(logging.WARNING):
        assert TombstoneFile(path).read() == frozenset((_HASHES[0], _HASHES[2]))
    assert "damaged line" in caplog.text
    TombstoneFile(path).add(_HASHES)
    caplog.clear()
    assert TombstoneFile(path).read() == frozenset(_HASHES)
    assert not caplog.records


def test_removed_tombstones_are_in_no_byte_of_the_file(path: Path) -> None:
    TombstoneFile(path).remove([_HASHES[1], _HASHES[3]])
    assert TombstoneFile(path).read() == frozenset((_HASHES[0], _HASHES[2]))
    assert _HASHES[1].hex().encode() not in path.read_bytes()
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_that_cannot_be_read_or_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "forgotten.hashes").mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        TombstoneFile(tmp_path / "forgotten.hashes").read()
    with pytest.raises(StoreError, match="cannot be written"):
        TombstoneFile(tmp_path / "missing" / "forgotten.hashes").add(_HASHES)
