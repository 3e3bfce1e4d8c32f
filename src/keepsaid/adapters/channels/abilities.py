"""What each messenger can do, declared once: its channel goes by this, and the contract of channels asks for it."""

from __future__ import annotations

import math
from typing import Final

from keepsaid.ports.channel import ChannelAbilities

TELEGRAM: Final = ChannelAbilities(
    chars_max=4_096,
    unit="utf16",
    typing_s=4.0,
    streams=True,
    edits=True,
    files=True,
    reactions=True,
    uploads=50_000_000,
)
"""Bot API: 4,096 units of a text; files of 50 MB; an action of a chat is shown for five seconds; nothing can be read
back.
"""

DISCORD: Final = ChannelAbilities(
    keyed_s=120.0,
    findable=True,
    chars_max=2_000,
    unit="utf16",
    typing_s=8.0,
    edits=True,
    files=True,
    reactions=True,
    uploads=10_000_000,
)
"""Discord folds the nonce of a message for minutes, of which two are relied on; typing is shown for ten seconds. Files
have 10 MiB where nobody pays for more.
"""

SLACK: Final = ChannelAbilities(
    findable=True, chars_max=11_000, typing_s=30.0, edits=True, files=True, reactions=True, uploads=50_000_000
)
"""Slack takes 12,000 characters of Markdown, and counts more than the text itself in them. It takes files of 1 GB; here
one is held in memory while it is sent.
"""

NOSTR: Final = ChannelAbilities(
    keyed_s=math.inf, chars_max=20_000, unit="bytes", files=True, reactions=True, uploads=20_000_000
)
"""Each try publishes the same event. Bytes of text as JSON: encrypted twice, and in Base64 each time, it is an event of
about 39 kB. Files go to servers that are set up for them, and none without one.
"""

MATRIX: Final = ChannelAbilities(
    keyed_s=1_200.0,
    findable=True,
    chars_max=30_000,
    unit="bytes",
    typing_s=20.0,
    edits=True,
    files=True,
    reactions=True,
    uploads=50_000_000,
)
"""Synapse keeps transactions for 30 minutes, and takes files of 50 MB by default. Bytes of the plain text and the HTML
of one event; the server takes 65,536 with all that is around them.
"""

EMAIL: Final = ChannelAbilities(chars_max=300_000, files=True, uploads=15_000_000)
"""Every try has one Message-ID, by which most programs, and not all, show a mail once. A longer text goes in several
mails, and so do files of more bytes together: in Base64 those of one mail are 20 MB, and many servers refuse more.
"""
