"""The end of the program's process: threads end, what was registered runs, what was printed is whole; nothing more."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import atexit, sys, threading
from keepsaid.__main__ import main

class Kept:
    def __del__(self):
        print("taken apart")

def last():
    threading.main_thread().join()
    print("a thread")
    atexit.register(print, "registered")

kept = Kept()
threading.Thread(target=last).start()
sys.argv[1:] = {arguments}
{call}
"""


def ran(*arguments: str, call: str = "main()") -> subprocess.CompletedProcess[str]:
    """The program with such arguments in a process of its own, where a thread and an object outlive it."""
    text = _PROGRAM.format(arguments=list(arguments), call=call)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize(("argument", "code"), [("--version", 0), ("nonsense", 2)])
def test_it_ends_after_its_threads_and_what_was_registered_and_takes_nothing_apart(argument: str, code: int) -> None:
    done = ran(argument)
    assert done.returncode == code, done.stderr
    assert done.stdout.splitlines()[-2:] == ["a thread", "registered"]


def test_an_exception_that_nobody_caught_ends_it_as_python_does() -> None:
    done = ran("--version", call="sys.stdout = None\nmain()")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_who_catches_the_exit_goes_on_and_ends_with_its_code() -> None:
    done = ran("--version", call="try:\n    main()\nexcept SystemExit:\n    print('on')")
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, ["on", "a thread", "registered"])
