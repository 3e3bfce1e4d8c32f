"""Failures: every error as a sentence, its safety and its remedy; what was not expected goes to the log."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable

from keepsaid.errors import ConfigError, HomeError, KeepsaidError, NotRunning
from keepsaid.interfaces.cli.console import envelope, session
from keepsaid.interfaces.cli.escapes import visible

FAILED, USAGE, NOT_RUNNING, NOT_CONFIGURED, WARNINGS, ERRORS, INTERRUPTED, TERMINATED = 1, 2, 3, 4, 5, 6, 130, 143
"""Exit codes, besides 0; 5 and 6 are the findings of a check."""


class Misused(KeepsaidError):
    """The command line was not understood."""

    code = "KS-USE"
    safe = "Nothing was done."
    hint = "keepsaid --help"


class Unexpected(KeepsaidError):
    """An error nobody foresaw: a bug."""

    code = "KS-BUG"
    safe = "What was acknowledged before is on disk."


def exit_code(error: KeepsaidError) -> int:
    """The exit code an error stands for."""
    if isinstance(error, Misused):
        return USAGE
    if isinstance(error, NotRunning):
        return NOT_RUNNING
    return NOT_CONFIGURED if isinstance(error, ConfigError) else FAILED


def tell(error: KeepsaidError, *, as_json: bool) -> None:
    """Say what happened, whether data is safe and what to run."""
    if as_json:
        print(envelope({"error": error.as_json()}), flush=True)
    else:
        lines = (f"error: {error.what}  [{error.code}]", f"  safe  {error.safe}", f"  try   {error.hint}")
        print(visible("\n".join(lines)), file=sys.stderr, flush=True)


def unexpected(error: Exception) -> Unexpected:
    """The error as people see it; its traceback stands in the log under a short id."""
    import secrets  # noqa: PLC0415 - needed when something broke

    short = secrets.token_hex(3)
    if session().verbose:
        print(visible("".join(traceback.format_exception(error))), file=sys.stderr)
    where = "in the log" if _logged(error, short) else "nowhere: the log cannot be written (-v prints it)"
    name = type(error).__name__
    return Unexpected(f"an unexpected {name}; its traceback is {where} as {short}", hint="keepsaid logs --level error")


def _logged(error: Exception, short: str) -> bool:
    from keepsaid.interfaces.cli.logs import append  # noqa: PLC0415 - needed when something broke

    raised = type(error), error, error.__traceback__
    record = logging.LogRecord("keepsaid.cli", logging.ERROR, "", 0, "unexpected error %s", (short,), raised)
    try:
        append(session().home.log_file, record)
    except (OSError, HomeError):
        return False
    return True


def guarded(command: Callable[[], int], *, as_json: bool) -> int:
    """Run a command; returns its exit code, and never raises."""
    try:
        return command()
    except KeepsaidError as error:
        tell(error, as_json=as_json)
        return exit_code(error)
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except BrokenPipeError:
        return FAILED
    except Exception as error:  # noqa: BLE001  # guard: CLI entry - people get a sentence, the log a traceback
        bug = unexpected(error)
        tell(bug, as_json=as_json)
        return exit_code(bug)
