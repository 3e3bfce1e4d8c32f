"""What `keepsaid status` prints in ten situations: kept in a file, so that a change is read by a person."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.test_status import ALL, CALM, WAITING, seen

from keepsaid.domain.message import Lane
from keepsaid.domain.retention import Backlog
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import PausedConversation
from keepsaid.interfaces.cli.status import described
from keepsaid.services.status import HostStatus, Status

_UP, _DOWN = "Running at http://127.0.0.1:7448 (pid 4121)", "Not running"
_LANE = Lane("terminal", "default", "terminal", "root:terminal")
_PAUSED = PausedConversation(_LANE.channel, _LANE.account, _LANE.conversation, 80_000, 2)

SITUATIONS: dict[str, tuple[Status, str]] = {
    "nothing waits": (CALM, _UP),
    "not running, and nothing waits": (CALM, _DOWN),
    "messages wait for a running instance": (seen(**WAITING), _UP),
    "messages wait for the next start": (seen(**WAITING), _DOWN),
    "the model cannot be reached": (seen(batches={"queued": 1, "leased": 2}, deferred=1), _UP),
    "tokens and their cost are known": (seen(usage=Usage(12_963, 1_204, 31_500)), _UP),
    "a conversation is paused": (seen(paused=(_PAUSED,)), _UP),
    "replies are not fetched": (replace(CALM, unfetched=Backlog(3, 100_000)), _UP),
    "an extension is quarantined, tools wait, and a server of tools is not there": (
        replace(CALM, host=HostStatus(10**12, {"desk": 2}, {"weather": "it raised KeyError"}, {"mail": "not found"})),
        _UP,
    ),
    "everything needs attention": (ALL, _DOWN),
}
"""Each with the status, and the process that uses the home."""


def page() -> str:
    """The text of every situation."""
    parts = []
    for name, (status, process) in SITUATIONS.items():
        sentence, _, lines = described(status, process, is_up=process == _UP)
        parts.append("\n".join([f"# {name}", sentence, *lines]))
    return "\n\n".join(parts) + "\n"
