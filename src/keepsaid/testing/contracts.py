"""The contract of an extension, as `keepsaid ext check` runs it (short: what users import stands apart)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from keepsaid.extensions.discovery import found_at
from keepsaid.testing.extension_checks import CHECKS, Trial


class ExtensionContract:
    """Subclass it with a fixture `extension`: the path of its file or folder. `settings` are those it is tried with.

    With a conversation in `send_to`, its channels send one message there.
    """

    settings: ClassVar[Mapping[str, Any]] = {}
    send_to: ClassVar[str] = ""

    @pytest.mark.parametrize("name", CHECKS)
    async def test_it_does_what_every_extension_does(self, name: str, extension: Path, tmp_path: Path) -> None:
        """One check at a time."""
        found = found_at(extension)
        await CHECKS[name](Trial(found, tmp_path, {found.id: self.settings}, send_to=self.send_to))
