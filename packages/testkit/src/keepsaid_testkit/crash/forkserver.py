"""The fork server: one process with every import done, which forks a life of the runtime whenever it is asked.

`python -m keepsaid_testkit.crash.forkserver --program MODULE:FUNCTION --preload MODULE ...`: the function takes a
command line and returns an exit code. One order a line comes in on stdin, as JSON: the fields of `Order`, or
`{"signal": 15}` for the life under way. On stdout goes what happened: `{"pid": 7}`, `{"claimed": 81.5}` (ms from the
fork to the first claim), `{"reached": "send.before"}` (it kills itself now), `{"ended": -9}`. There is one life at a
time, and none outlives stdin.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from time import monotonic

from keepsaid.adapters.models import provider
from keepsaid_testkit.crash.child import lived
from keepsaid_testkit.crash.order import Order, Program, program_of, tell

_LOOK_S = 0.003
_SWITCH_S = 0.0005
_GARBAGE = (20_000, 20, 20)
"""As the program has both."""

LIBRARIES = (
    "anyio._backends._asyncio",
    "encodings.utf_16_le",
    "genai_prices.data",
    "keepsaid.adapters.channels.push",
    "keepsaid.adapters.sql.search.vector_codes",
    "numpy.ma",
    "numpy.typing",
    "openai.lib.streaming.chat",
    "openai.pagination",
    "openai.resources.chat",
    "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai",
    "typer._adapters",
    "typer._click.decorators",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.http.h11_impl",
    "uvicorn.protocols.websockets.auto",
)
"""What a life imports on its way to its first answers, a third of a second of work."""


class ForkServer:
    """Reads orders and forks."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._buffer = b""
        self._open = True

    def serve(self) -> None:
        """Live one life after another until stdin ends."""
        while (line := self._line(None)) is not None:
            told = json.loads(line)
            if "signal" not in told:  # a signal that came too late is for nobody
                self._live(Order(**told))

    def _live(self, order: Order) -> None:
        assert threading.active_count() == 1, "a process with threads must not fork"
        began = monotonic()
        pid = os.fork()
        if not pid:
            tell({"pid": os.getpid()})  # by the child itself, so that nothing else it tells comes before
            os._exit(lived(self._program, order, began))
        status: int | None = None
        while status is None:
            done, code = os.waitpid(pid, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(code)
                break
            line = self._line(_LOOK_S)
            if line:
                os.kill(pid, int(json.loads(line)["signal"]))
            elif not self._open:
                os.kill(pid, signal.SIGKILL)
        tell({"ended": status})

    def _line(self, within_s: float | None) -> bytes | None:
        """The next order; None when there is none in time, or none any more."""
        while b"\n" not in self._buffer:
            if not self._open or not select.select([0], [], [], within_s)[0]:
                return None
            read = os.read(0, 65_536)
            self._open = bool(read)
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


def main(arguments: Sequence[str] | None = None) -> int:
    """Import everything, then serve."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid_testkit.crash.forkserver", description=main.__doc__)
    parser.add_argument("--program", required=True, help="what a life runs: MODULE:FUNCTION")
    parser.add_argument("--preload", nargs="*", default=(), help="modules it will need")
    options = parser.parse_args(arguments)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else numpy starts threads when it is imported
    gc.set_threshold(*_GARBAGE)
    for name in (*LIBRARIES, *options.preload):
        import_module(name)
    provider.authorities()
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()
    ForkServer(program_of(options.program)).serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
