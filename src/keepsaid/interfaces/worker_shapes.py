"""Leased batches as JSON for those who answer them: by HTTP, by MCP and in the library alike."""

from __future__ import annotations

from keepsaid.domain.ids import read, show, when
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.interfaces.shapes import Shape, fields_of


def handle_of(batch_id: int, fence: int) -> str:
    """The handle of a lease: its batch and its fence."""
    return f"{show('batch', batch_id)}/{fence}"


def lease_in(handle: str) -> tuple[int, int] | None:
    """The batch and the fence in a handle; None where it is not one."""
    name, _, fence = handle.partition("/")
    number = read("batch", name)
    if number is None or not (fence.isascii() and fence.isdigit() and len(fence) < len(str(1 << 63))):
        return None
    return number, int(fence)


def leased_shape(claimed: ClaimedBatch, lease_s: int) -> Shape:
    """A batch with its messages, and the handle of the lease that it is held under for `lease_s` seconds."""
    batch = claimed.batch
    return {
        "id": show("batch", batch.id),
        "fence": batch.fence,
        "lease": handle_of(batch.id, batch.fence),
        "lease_s": lease_s,
        "turn": show("turn", claimed.turn_id),
        **fields_of(batch.lane, "channel", "account", "conversation"),
        "lane": batch.lane.key,
        "priority": batch.priority,
        "attempts": batch.attempts,
        "messages": [_message_shape(one) for one in claimed.all_messages],
    }


def _message_shape(message: StoredMessage) -> Shape:
    inbound = message.inbound
    return {
        "id": show("message", message.id),
        **fields_of(inbound.origin, "sender", "name", "direct"),
        "trust": str(inbound.origin.trust),
        "event": inbound.content.event,
        "external_id": inbound.marks.external_id,
        "provider_id": inbound.marks.provider_id,
        "reply_to": inbound.marks.reply_to,
        "text": message.text,
        "received_at": when(message.received_at),
    }
