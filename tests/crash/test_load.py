"""The load of a play: it never holds up a life by what it is itself."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from pathlib import Path

from keepsaid_testkit.crash.process import running


def test_it_falls_silent_by_itself_and_not_while_it_reads_a_store(tmp_path: Path) -> None:
    ledger = tmp_path / "load.jsonl"
    places = [
        "--home",
        str(tmp_path),
        "--ledger",
        str(ledger),
        "--reply-url",
        "http://none",
        "--closed-url",
        "http://none",
    ]
    with (
        (tmp_path / "errors").open("wb") as errors,
        running(["keepsaid_testkit.crash.load", *places], subprocess.PIPE, errors) as load,
    ):
        assert load.stdout is not None
        while not ledger.exists():
            assert not select.select([load.stdout], [], [], 0.01)[0], "it ended by itself"
        load.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(load.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        assert os.WSTOPSIG(status) == signal.SIGSTOP, "its own, sent between two things that it does"
        load.send_signal(signal.SIGCONT)
