"""The user's own consent to what cannot be taken back, asked of a client that can ask its user (elicitation)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from keepsaid.interfaces.mcp.tool import Ask
from keepsaid.interfaces.shapes import Shape
from keepsaid.text.normal import cut

_MODERN = "2026-07-28"
"""The first revision in which a server asks by a result, and the client calls again."""

_NAME = "consent"
_SHOWN, _SHOWN_CHARS = 3, 160
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"forget": {"type": "boolean", "title": "Forget them", "default": False}},
    "required": ["forget"],
}


def can_ask_user(ctx: Any) -> bool:
    """Whether the user can be asked in the course of a request: the client declares it, and there is a way back."""
    have = ctx.session.client_capabilities
    asks = have is not None and have.elicitation is not None
    if asks and have.elicitation.form is None and have.elicitation.url is not None:
        return False
    return asks and (ctx.protocol_version >= _MODERN or ctx.session.can_send_request)


async def forget(ctx: Any, params: Any, ask: Ask, given: Mapping[str, Any]) -> Shape | types.InputRequiredResult:
    """Forget memories once the user agrees: the first round counts them, the second one forgets just these.

    What is carried between the rounds is the token that counting gives: it holds for this caller, these memories and
    these counts, so that no client can widen what was agreed to.
    """
    said = (params.input_responses or {}).get(_NAME)
    if said is not None and params.request_state:
        return await _settled(ask, given, said, params.request_state)
    counted = await ask("forget", given)
    wanted = types.ElicitRequestFormParams(message=_question(counted), requested_schema=_SCHEMA)
    if ctx.protocol_version >= _MODERN:
        requests = {_NAME: types.ElicitRequest(params=wanted)}
        return types.InputRequiredResult(input_requests=requests, request_state=counted["confirm"])
    answer = await ctx.session.elicit_form(wanted.message, _SCHEMA, ctx.request_id)
    return await _settled(ask, given, answer, counted["confirm"])


async def _settled(ask: Ask, given: Mapping[str, Any], said: Any, confirm: str) -> Shape:
    agreed = getattr(said, "action", "") == "accept" and (said.content or {}).get("forget") is True
    if agreed:
        return await ask("forget", {**given, "confirm": confirm})
    return {"state": "declined", "counts": {}, "next": "the user did not agree: nothing was forgotten"}


def _question(counted: Shape) -> str:
    texts = [f"\u201c{cut(one['text'], _SHOWN_CHARS)}\u201d" for one in counted["memories"]]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    counts = ", ".join(f"{name}: {number}" for name, number in sorted(counted["counts"].items()) if number)
    return f"Forget {', '.join(texts[:_SHOWN])}{more}? This cannot be taken back. It takes {counts}."
