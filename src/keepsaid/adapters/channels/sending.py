"""Sending over HTTP: whether a request may have arrived (short: the last look of every channel that sends)."""

from __future__ import annotations

from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError, StoreError
from keepsaid.ports.channel import PartedChannel, check_may_send

_LEAVES = ("send_request_headers.started", "send_request_body.started")
"""Steps of the transport right after which bytes are written; between the two, other coroutines may run."""


class SendTrace:
    """Follows a request as the transport reports it: `is_sent` from its first byte on, as it may arrive then.

    A process that was stopped meanwhile, and taken for dead, writes neither head nor body: others may have sent the
    reply, marked. A request without its body is nowhere taken for one.
    """

    def __init__(self) -> None:
        self.is_sent = False

    async def note(self, name: str, info: object) -> None:  # noqa: ARG002 - the signature of httpx2's trace
        """Take a step of the transport; raises InterruptedError when nothing more may leave."""
        if name.endswith(_LEAVES):
            check_may_send()
            self.is_sent = True


async def send_parts(channel: PartedChannel, reply: StoredReply) -> SendResult:
    """Send the parts of a reply one after the other until one does not arrive; which of them did is not kept."""
    result = SendResult(Delivered.CONFIRMED)
    try:
        bodies = await channel.split(reply)
    except (ChannelError, StoreError) as error:
        return SendResult(Delivered.RETRY, f"not sent: {error.what}", outage=True)
    for n, body in enumerate(bodies):
        result = await channel.send_part(reply, ReplyPart(reply.id, n, body))
        if result.outcome is not Delivered.CONFIRMED:
            break
    return result
