"""The extractor without a model: what people say outright, by rules; everything else waits for a model, marked."""

from __future__ import annotations

import asyncio

from keepsaid.domain.collection import Passage
from keepsaid.domain.finding import RULES
from keepsaid.domain.statements import told_in
from keepsaid.ports.model import Extracted


class ExplicitExtractor:
    """Reads what people said, by the rules of `domain.explicit`."""

    name = RULES
    thorough = False

    async def extract(self, passage: Passage) -> Extracted:
        """What is stated outright."""
        statements = []
        for one in passage.told:
            statements += [told.by(one.speaker, one.position) for told in told_in(one.text)]
            await asyncio.sleep(0)
        return Extracted(tuple(statements))
