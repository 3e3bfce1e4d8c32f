"""The operator's route for imports: one batch of records is looked at, or taken over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.bundle import RECORDS_MAX, Entry, Record, Verdict
from keepsaid.domain.bundle_lines import Misfit, record_in
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest
from keepsaid.interfaces.importing import Here

_BODY_BYTES_MAX = 64_000_000


async def take_records(instance: Instance, gate: Gate, request: Request) -> Response:
    """Say what becomes of records (`look`), take them over (`take`), or learn what they say (`learn`).

    `key` tells which key the tombstones are made with, and takes one over where there is none.
    """
    gate.operator(request)
    fields = await fields_of(request, _BODY_BYTES_MAX)
    here, do = Here(instance), fields.get("do")
    if do == "key":
        given = _hex(fields.get("key", ""), "key")
        return JSONResponse(
            {"adopted": bool(given) and await here.adopt_key(given), "key_print": await here.key_print()}
        )
    records = _records(fields.get("records"))
    if do == "look":
        return _told(await here.look(records))
    if do == "take":
        contested = fields.get("contested", [])
        if not isinstance(contested, list):
            raise BadRequest("contested must be a list of texts in hexadecimal")
        return _told(await here.take(records, [_hex(one, "contested") for one in contested]))
    if do == "learn":
        return _told(await here.learn([one for one in records if isinstance(one, Entry)]))
    raise BadRequest("do must be look, take, learn or key")


def _records(given: Any) -> list[Record]:
    if not isinstance(given, list) or len(given) > RECORDS_MAX:
        raise BadRequest(f"records must be a list of at most {RECORDS_MAX}")
    records = []
    for n, one in enumerate(given):
        try:
            records.append(record_in(one))
        except Misfit as error:
            raise BadRequest(f"record {n}: {error}") from error
    return records


def _hex(given: Any, name: str) -> bytes:
    try:
        return bytes.fromhex(given)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{name} must be text in hexadecimal") from error


def _told(verdicts: Sequence[Verdict]) -> Response:
    told = [
        {"outcome": str(one.outcome), "why": one.why, "beside": list(one.beside), "like": list(one.like)}
        for one in verdicts
    ]
    return JSONResponse({"verdicts": told})
