"""Files that are deleted, moved or replaced under a running server: it refuses, ends, and nobody starts beside it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running, line_of


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A home that does not exist yet."""
    program = Program(tmp_path / "home")
    program.configure("models: {chat: none}\n")
    return program


@contextmanager
def doomed(program: Program) -> Iterator[Running]:
    """A server that will not end well."""
    process = program.start("serve", "--port", "0", "--json")
    with process:
        try:
            address = json.loads(line_of(process))
            yield Running(process, address["url"], program.runtime()["token"])
        finally:
            process.kill()


def put(running: Running, text: str) -> httpx2.Response | None:
    """Put a message in; None where nobody listens any more."""
    body = {"text": text, "sender": "ann", "conversation": "room"}
    try:
        return httpx2.post(f"{running.url}/v1/messages", json=body, timeout=WITHIN_S, verify=False)
    except httpx2.TransportError:
        return None


def answers(running: Running) -> bool:
    """Whether this very server still answers: another that got its port since does not know its token."""
    headers = {"Authorization": f"Bearer {running.token}"}
    try:
        return (
            httpx2.get(f"{running.url}/v1/status", headers=headers, timeout=WITHIN_S, verify=False).status_code == 200
        )
    except httpx2.TransportError:
        return False


def assert_told(running: Running) -> None:
    """The server ended with the error, whether data is safe and what to run."""
    out, err = running.process.communicate()
    error = json.loads(out.splitlines()[-1])["error"]
    assert error["code"] == "KS-DB-GONE"
    assert "deleted, moved or replaced" in error["what"]
    assert "acknowledged before" in error["safe"]
    assert "keepsaid" in error["hint"]
    assert "Traceback" not in err


def delete_home(home: Path) -> None:
    shutil.rmtree(home)


def delete_data(home: Path) -> None:
    shutil.rmtree(home / "data")


def rename_home(home: Path) -> None:
    home.rename(home.with_name("moved"))


def rename_data(home: Path) -> None:
    (home / "data").rename(home / "moved")


def delete_database(home: Path) -> None:
    (home / "data" / "buffer.db").unlink()


def delete_log(home: Path) -> None:
    (home / "data" / "buffer.db-wal").unlink()


def replace_database(home: Path) -> None:
    shutil.copyfile(home / "data" / "buffer.db", home / "data" / "copy.db")
    (home / "data" / "copy.db").rename(home / "data" / "buffer.db")


def replace_data(home: Path) -> None:
    shutil.copytree(home / "data", home / "copy")
    (home / "data").rename(home / "moved")
    (home / "copy").rename(home / "data")


def delete_memory(home: Path) -> None:
    (home / "data" / "memory.db").unlink()


def delete_lock(home: Path) -> None:
    (home / "run" / "lock").unlink()


def replace_lock(home: Path) -> None:
    (home / "run" / "lock").rename(home / "run" / "moved")
    (home / "run" / "lock").write_text("1\n", "ascii")


STORE = [
    delete_home,
    delete_data,
    rename_home,
    rename_data,
    delete_database,
    delete_log,
    replace_database,
    replace_data,
]
OTHERS = [delete_memory, delete_lock, replace_lock]


@pytest.mark.parametrize("harm", STORE, ids=lambda harm: harm.__name__)
def test_nothing_is_acknowledged_into_a_lost_store(fresh: Program, harm: Callable[[Path], None]) -> None:
    with doomed(fresh) as running:
        before = put(running, "before")
        assert before is not None
        assert before.status_code == 201
        harm(fresh.home)
        after = put(running, "after")
        if after is not None:
            assert after.status_code == 503, "it was acknowledged into nowhere"
            assert after.json()["code"] == "KS-DB-GONE"
            assert "deleted, moved or replaced" in after.json()["title"]
        assert running.process.wait(WITHIN_S) == 1
        assert_told(running)


@pytest.mark.parametrize("harm", OTHERS, ids=lambda harm: harm.__name__)
def test_a_server_ends_by_itself_when_a_file_it_holds_is_lost(fresh: Program, harm: Callable[[Path], None]) -> None:
    with doomed(fresh) as running:
        assert put(running, "before") is not None
        harm(fresh.home)
        assert running.process.wait(WITHIN_S) == 1
        assert_told(running)


@pytest.mark.parametrize("harm", [delete_home, rename_home, delete_lock], ids=lambda harm: harm.__name__)
def test_no_second_server_starts_beside_one_whose_home_is_lost(fresh: Program, harm: Callable[[Path], None]) -> None:
    with doomed(fresh) as running:
        assert answers(running)
        harm(fresh.home)
        fresh.configure("models: {chat: none}\n")
        refused = 0
        while True:
            second = fresh.start("serve", "--port", "0", "--json")
            try:
                line = second.stdout.readline() if second.stdout else ""
                if "error" not in json.loads(line):
                    assert not answers(running), "two servers run at once"
                    break
                assert json.loads(line)["error"]["code"] == "KS-HOME-BUSY"
                refused += 1
            finally:
                second.kill()
                second.communicate()
            assert refused < 100, "the first never ends"
        assert running.process.wait(WITHIN_S) == 1


def test_a_moved_home_opens_again_where_it_went(fresh: Program) -> None:
    with doomed(fresh) as running:
        told = put(running, "before")
        assert told is not None
        rename_home(fresh.home)
        assert running.process.wait(WITHIN_S) == 1
    listed = Program(fresh.home.with_name("moved")).run("inbox", "ls", "--json").json["messages"]
    assert [message["id"] for message in listed] == [told.json()["id"]]


@pytest.fixture
def killed(fresh: Program) -> Program:
    """A home with an acknowledged message that is in the log alone, after kill -9."""
    with doomed(fresh) as running:
        assert put(running, "acknowledged") is not None
    return fresh


def remove_logs(home: Path) -> None:
    for log in (home / "data").glob("*-wal"):
        log.unlink()


def empty_buffer(home: Path) -> None:
    remove_logs(home)
    (home / "data" / "buffer.db").write_bytes(b"")


@pytest.mark.parametrize(("harm", "code"), [(remove_logs, "KS-DB-LOG"), (empty_buffer, "KS-DB-LOG")])
def test_every_command_names_a_lost_log_and_what_to_do(
    killed: Program, harm: Callable[[Path], None], code: str
) -> None:
    harm(killed.home)
    for command in (("status",), ("inbox", "ls"), ("serve", "--port", "0"), ("data", "backup")):
        error = json.loads(killed.run(*command, "--json", code=1).out.splitlines()[-1])["error"]
        assert error["code"] == code, command
        assert "accept-loss" in error["hint"]
    told = killed.run("doctor", "--offline", "--deep", "--json", code=6).json
    assert any("buffer.db-wal is gone" in finding["what"] for finding in told["findings"])
    assert killed.run("data", "accept-loss", "--json").json["accepted"] is False
    killed.run("status", code=1)
    assert killed.run("data", "accept-loss", "--yes", "--json").json["accepted"] is True
    assert killed.run("inbox", "ls", "--json").json["messages"] == []
    assert killed.run("data", "accept-loss", "--json").json["lost"] is None
    with killed.serving() as running:
        assert put(running, "after") is not None


def test_a_restored_backup_starts_beside_no_former_progress(fresh: Program) -> None:
    saved, home = fresh.home.with_name("saved"), fresh.home.with_name("restored")
    with fresh.serving() as running:
        assert put(running, "one") is not None
        fresh.run("data", "backup", str(saved))
        assert put(running, "two") is not None
    fresh.run("data", "restore", str(saved), "--to", str(home))
    restored = Program(home)
    with restored.serving():
        assert len(restored.run("inbox", "ls", "--json").json["messages"]) == 1


def test_an_older_copy_by_hand_is_refused_and_can_be_accepted(fresh: Program) -> None:
    saved = fresh.home.with_name("saved")
    with fresh.serving() as running:
        assert put(running, "one") is not None
        fresh.run("data", "backup", str(saved))
    with fresh.serving() as running:
        assert put(running, "two") is not None
    shutil.copyfile(saved / "buffer.db", fresh.home / "data" / "buffer.db")
    assert "older copy" in fresh.run("status", code=1).err
    fresh.run("data", "accept-loss", "--yes")
    assert len(fresh.run("inbox", "ls", "--json").json["messages"]) == 1
