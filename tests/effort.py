"""Examples of property tests: few in `make test`, ten times as many in `make soak PART=property`."""

from __future__ import annotations

import os

_TIMES = int(os.environ.get("KEEPSAID_TEST_EFFORT", "1"))


def examples(count: int) -> int:
    """So many examples, times KEEPSAID_TEST_EFFORT."""
    return count * _TIMES
