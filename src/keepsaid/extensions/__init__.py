"""The door: code from outside the core, described by a manifest, let in one by one and kept from breaking the rest.

What an extension is written with stands here; what it may provide stands in `ports`, on one page in `docs/develop`.
"""

from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.domain.reply import StoredReply as Reply
from keepsaid.extensions.manifest import context, extension, on, schedule, tool
from keepsaid.ports.channel import Incoming

__all__ = ["Delivered", "Incoming", "Reply", "SendResult", "context", "extension", "on", "schedule", "tool"]
