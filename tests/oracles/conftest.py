"""(short: one hook) Warnings of the libraries, which are not ours to mend."""

from __future__ import annotations

import pytest

_OF_LIBRARIES = ("ignore:'audioop' is deprecated:DeprecationWarning",)


def pytest_configure(config: pytest.Config) -> None:
    """Ignore what the libraries warn of while they are imported; all else fails, as in other tests."""
    for one in _OF_LIBRARIES:
        config.addinivalue_line("filterwarnings", one)
