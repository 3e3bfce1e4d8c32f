"""The workers of the documentation: each is started beside a server, and answers what is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.acceptance.program import Program
from tests.docs.markdown import documents

WORKERS = {
    block.info.split()[0]: block for page in documents() for block in page.blocks if block.info.endswith("worker")
}
NODE = shutil.which("node")


def test_both_kinds_of_worker_are_shown() -> None:
    assert sorted(WORKERS) == ["javascript", "python"]


@pytest.mark.parametrize("language", sorted(WORKERS))
def test_a_worker_answers(language: str, tmp_path: Path) -> None:
    if language == "javascript" and NODE is None:
        pytest.skip("node is not installed")
    if language == "python" and find_spec("dbos") is None:
        pytest.skip("dbos is not installed")
    program = Program(tmp_path / "home", {"KEEPSAID_TURNS__ANSWERED_BY": "workers"})
    program.configure("models: {chat: none}\nbuffer: {window_ms: 0}\nchannels: {http: {window_ms: 0}}\n")
    file = tmp_path / ("worker.mjs" if language == "javascript" else "worker.py")
    file.write_text(WORKERS[language].text, "utf-8")
    command = [(NODE or "node") if language == "javascript" else sys.executable, str(file)]
    with program.serving() as running:
        told = {"KEEPSAID_URL": running.url, "KEEPSAID_TOKEN": running.token}
        database = {"DBOS_SYSTEM_DATABASE_URL": f"sqlite:///{tmp_path / 'dbos.sqlite'}"}
        with subprocess.Popen(command, env={**os.environ, **told, **database}, cwd=tmp_path) as worker:
            try:
                sent = [program.run("inbox", "send", text, "--json").json["id"] for text in ("the boat", "the sea")]
                stories = [running.settled(one) for one in sent]
            finally:
                worker.kill()
    assert [story["state"] for story in stories] == ["done", "done"]
    replies = [reply["text"] for story in stories for reply in story["replies"]]
    assert set(replies) <= {"Noted: the boat", "Noted: the sea", "Noted: the boat / the sea"}
    assert replies
