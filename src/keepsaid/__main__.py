"""The program's entry: `keepsaid`, or `python -m keepsaid`."""

from __future__ import annotations

import atexit
import gc
import os
import sys

_SWITCH_S = 0.0005
"""With Python's own 5 ms the writer thread starves behind a busy event loop (docs/develop/adr)."""

_GARBAGE = (20_000, 20, 20)
"""Python's own 700 makes a twentieth of every start a search for garbage that imports do not leave."""


def tune() -> None:
    """Set up the interpreter as the program runs it; before anything of numpy is imported."""
    sys.setswitchinterval(_SWITCH_S)
    gc.set_threshold(*_GARBAGE)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # vectors are made beside the event loop, not on every core


_CODE: list[int] = []
"""The exit code, once the command is over."""


def _leave() -> None:
    """End the process where Python would begin to take its modules apart, which takes 0.1 s and serves nobody.

    Registered before anything of the program is imported, it runs last: threads have ended, and what the program
    registered to run at its exit has run. An exception that nobody caught leaves no code, and ends as Python ends it.
    """
    if _CODE:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(_CODE[0])


def main() -> None:
    """Run the command line; exits with 0 or one of the codes of `interfaces.cli.failure`."""
    atexit.register(_leave)
    tune()
    from keepsaid.interfaces.cli.program import run  # noqa: PLC0415 - the interval is set before anything runs

    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has gone; the interpreter would say so again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    _CODE.append(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
