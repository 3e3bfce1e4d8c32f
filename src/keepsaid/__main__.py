"""The program's entry: `keepsaid`, or `python -m keepsaid` (short: python runs it)."""

from __future__ import annotations

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


def main() -> None:
    """Run the command line; exits with 0 or one of the codes of `interfaces.cli.failure`."""
    tune()
    from keepsaid.interfaces.cli.program import run  # noqa: PLC0415 - the interval is set before anything runs

    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has gone; the interpreter would say so again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    gc.freeze()  # else the exit searches for garbage once more, for 0.04 s
    sys.exit(code)


if __name__ == "__main__":
    main()
