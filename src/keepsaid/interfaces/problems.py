"""Problems: errors that an instance answers with over HTTP, as those of the tree (short: one answer, read one way)."""

from __future__ import annotations

import json
from typing import Any

from keepsaid import errors


def object_in(answer: bytes) -> dict[str, Any] | None:
    """The JSON object in an answer; None if it holds none, as another server listens there."""
    try:
        told = json.loads(answer)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def problem_in(body: bytes, status: int) -> errors.KeepsaidError:
    """The error in a problem+json answer, with its own words."""
    if (told := object_in(body)) is None:
        return errors.KeepsaidError(f"the runtime answered with HTTP {status}", safe="Unknown for this request.")
    code = str(told.get("code", ""))
    error = _kind_of(code, status)(str(told.get("title")))
    error.code = code or error.code
    error.safe, error.hint = str(told.get("safe", error.safe)), str(told.get("hint", error.hint))
    return error


def _kind_of(code: str, status: int) -> type[errors.KeepsaidError]:
    """The error of the tree with this code; the tree alone, whatever else was imported.

    What HTTP alone calls an error was wrong input, where it is the caller's and not about who calls.
    """
    other = errors.InputError if 400 <= status < 500 and status not in (401, 403) else errors.KeepsaidError
    return next((kind for kind in vars(errors).values() if getattr(kind, "code", None) == code), other)
