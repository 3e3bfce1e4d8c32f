"""Pins: hashes of accepted texts of MCP tools (short: the value that port, adapter and command share)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from keepsaid.domain.prompt import Json
from keepsaid.text.normal import digest


class ToolStanding(StrEnum):
    """Whether the owner accepted the text of a tool: this very text, an earlier one, or none."""

    ACCEPTED = "accepted"
    CHANGED = "changed"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Described:
    """The whole text of a tool that a model would be shown: its description, and the schema of its arguments."""

    description: str
    schema: Mapping[str, Json]

    @property
    def pin(self) -> str:
        """The hash of the text, 32 hexadecimal digits. The order of keys in the schema does not count."""
        return digest(self.description, json.dumps(self.schema, sort_keys=True)).hex()


def standing_of(text: Described, accepted: Described | None) -> ToolStanding:
    """Where a text stands beside the one that was accepted of the same tool; None where none was."""
    if accepted is None:
        return ToolStanding.NEW
    return ToolStanding.ACCEPTED if text.pin == accepted.pin else ToolStanding.CHANGED
