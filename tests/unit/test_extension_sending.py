"""`ext check --send-to` sends a message, and fails where that raises; without it nothing is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.extension_cast import put

from keepsaid.extensions.discovery import found_at
from keepsaid.testing.extension_checks import Trial, checked

MUTE = '''
@extension(id="mute", channel={})
class Mute:
    """Cannot send."""

    async def send(self, reply):
        raise ValueError("wrong password")
'''


@pytest.mark.parametrize(
    ("send_to", "amiss"), [("room", "the channel mute cannot send: ValueError: wrong password"), ("", "")]
)
async def test_a_channel_that_cannot_send_fails_where_it_is_tried(tmp_path: Path, send_to: str, amiss: str) -> None:
    found = found_at(put(tmp_path / "extensions", "mute", MUTE))
    told = await checked(Trial(found, tmp_path / "data", {}, (), send_to=send_to))
    assert list(told.values())[-1] == amiss
