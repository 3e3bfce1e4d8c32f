"""Config files that the tests of settings write, and how they are refused."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from keepsaid.config import load
from keepsaid.errors import ConfigError

Write = Callable[[str | bytes], Path]


def writing(folder: Path) -> Write:
    """Writes a config file."""

    def put(text: str | bytes) -> Path:
        file = folder / "config.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return put


def our_variables() -> Iterator[str]:
    """Settings of whoever runs the tests."""
    return (name for name in list(os.environ) if name.upper().startswith("KEEPSAID_"))


def refused(file: Path, settings: Mapping[str, Any] | None = None) -> ConfigError:
    """How a file is refused."""
    with pytest.raises(ConfigError) as caught:
        load(file, settings)
    assert caught.value.safe
    assert caught.value.hint
    return caught.value
