"""Early: what a message brings to mind is looked for while it is routed, where its turn comes at once."""

from __future__ import annotations

from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.config import Config
from keepsaid.domain.commits import Intake, Received
from keepsaid.domain.message import SYSTEM, Inbound
from keepsaid.memory.injection import listening
from keepsaid.memory.recall.recollection import QUERY_CHARS_MAX, Ahead, Recollection
from keepsaid.memory.recording import Recorder
from keepsaid.pipeline.intake import storable
from keepsaid.ports.runtime import Clock
from keepsaid.text.words import leans

_COMMAND = "/"


class Early:
    """Begins to recall for messages that nothing is waited for with: no window, no words of others.

    `expecting` is set while there is somebody here who answers.
    """

    def __init__(
        self, config: Config, recall: Recollection, memories: SqliteMemories, recorder: Recorder, clock: Clock
    ) -> None:
        self.recall = Ahead(recall, lambda: memories.news.changes, clock)
        self.expecting = False
        self._recorder = recorder
        windows = {name: one.window(config.buffer) for name, one in config.channels.items()}
        self._at_once = {name for name, one in windows.items() if not one.window_ms and not one.quiet_ms}
        self._wanted = config.memory.injection == "auto"
        self._per_leg = config.memory.per_leg
        self._cross = config.lanes.cross == "always"

    def expect(self, inbound: Inbound, received: Received) -> Received:
        """A message was taken in: most likely its turn will ask for its words alone. Returns the receipt."""
        short = len(inbound.content.text) < QUERY_CHARS_MAX
        if short and self._comes_at_once(inbound, received) and not self.recall.rests:
            inbound = storable(inbound)
            text = inbound.content.text
            if not text.startswith(_COMMAND) and not leans(text) and self._recorder.caught_up:
                listener = listening(received.lane, [inbound.origin], cross=self._cross)
                self.recall.begin(listener, text, self._per_leg)
        return received

    def _comes_at_once(self, inbound: Inbound, received: Received) -> bool:
        origin = inbound.origin
        alone = inbound.marks.reply_to is None and origin.channel in self._at_once and origin.sender != SYSTEM
        return alone and self.expecting and self._wanted and received.intake is Intake.STORED

    def stop(self) -> None:
        """Nothing is expected any more."""
        self.expecting = False
        self.recall.stop()
