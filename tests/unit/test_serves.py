"""`serves` and `output` of tools: what extensions and the config declare is what the gate of a turn asks for."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import ValidationError

from keepsaid.config.services import McpServerConfig
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, ToolCall
from keepsaid.domain.trust import Taint
from keepsaid.domain.turn import ToolClass
from keepsaid.extensions import tool
from keepsaid.extensions.manifest import MARK, tool_of
from keepsaid.pipeline.turn.authorization import CallGate
from keepsaid.ports.model import Tool

RANK = (Trust.EXTERNAL, Trust.KNOWN, Trust.OWNER)


def declared(**terms: Any) -> Tool:
    """The tool of an extension with these terms."""

    async def roll(sides: int) -> int:
        """Roll a die."""
        return sides

    marked: Any = tool(**terms)
    return tool_of(marked(roll), getattr(roll, MARK))


@pytest.mark.parametrize(
    ("terms", "needs"),
    [
        ({}, Trust.OWNER),
        ({"kind": "pure"}, Trust.EXTERNAL),
        ({"kind": "idempotent"}, Trust.OWNER),
        ({"kind": "checkable"}, Trust.OWNER),
        ({"kind": "pure", "serves": "owner"}, Trust.OWNER),
        ({"serves": "known"}, Trust.KNOWN),
        ({"kind": "unsafe", "serves": "anyone"}, Trust.EXTERNAL),
    ],
)
def test_a_tool_of_an_extension_serves_whom_it_declares(terms: dict[str, Any], needs: Trust) -> None:
    assert declared(**terms).needs is needs


@pytest.mark.parametrize("output", ["external", "known", "owner"])
def test_the_output_of_a_tool_has_the_trust_that_is_declared(output: Literal["external", "known", "owner"]) -> None:
    assert declared().output is Trust.EXTERNAL
    assert declared(output=output).output is Trust(output)


@pytest.mark.parametrize("terms", [{"serves": "everybody"}, {"output": "friends"}])
def test_a_declaration_that_is_no_trust_is_refused(terms: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        declared(**terms)
    with pytest.raises(ValidationError):
        McpServerConfig.model_validate({"url": "http://b", **terms})


@pytest.mark.parametrize("trust", RANK)
@pytest.mark.parametrize("needs", RANK)
async def test_a_call_is_made_at_the_declared_trust_and_above(trust: Trust, needs: Trust) -> None:
    async def run(_: dict[str, Json]) -> str:
        return "done"

    one = Tool("press", "Press.", {"type": "object"}, run, ToolClass.UNSAFE, serves=needs)
    gate = CallGate(Taint(trust, "a reason"))
    refusal = await gate.refusal(one, ToolCall("1", "press", "{}"))
    assert (refusal is None) is (RANK.index(trust) >= RANK.index(needs))
    if refusal is not None:
        assert "a reason" in refusal.text
