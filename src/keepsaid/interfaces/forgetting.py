"""Forgetting as JSON: what a request body names, what would go, and the receipt of what went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepsaid.domain.forgetting import Forgetting
from keepsaid.domain.ids import show, when
from keepsaid.errors import InputError
from keepsaid.interfaces.shapes import Shape
from keepsaid.services.forgetting import ForgetPreview, ForgetRequest
from keepsaid.text.normal import cut

_TEXT_CHARS = 200
_SAFE = "Nothing was changed."
_HINT = "keepsaid memory forget --help"


def forget_request(fields: Mapping[str, Any]) -> ForgetRequest:
    """What a request body asks for; raises InputError."""
    names = ("person", "conversation", "filter", "undo_for")
    ids, rest = fields.get("ids") or [], [fields.get(name) or "" for name in names]
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in (*ids, *rest)):
        raise InputError(f"ids must be a list of texts; {', '.join(names)} texts", safe=_SAFE, hint=_HINT)
    return ForgetRequest(tuple(ids), *rest)


def preview_shape(preview: ForgetPreview) -> Shape:
    """What would go, counted, with the first memories of it."""
    shown = [
        {"id": show("memory", one.id), "kind": str(one.new.kind), "text": cut(one.text, _TEXT_CHARS)}
        for one in preview.memories
    ]
    return {"dry_run": True, "counts": dict(preview.counts), "memories": shown}


def forgetting_shape(one: Forgetting, backups: Sequence[str] = ()) -> Shape:
    """A request to forget, how far it is, and what went, by place."""
    return {
        "id": show("forgetting", one.id),
        "state": one.state,
        "how": one.how,
        "by": one.by,
        "requested_at": when(one.requested_at),
        "changed_at": when(one.changed_at),
        "undo_until": when(one.undo_until),
        "counts": dict(one.counts),
        "backups": list(backups),
    }
