"""Steps as the RAM store keeps them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from keepsaid.domain.turn import Step


@dataclass(slots=True, eq=False)
class StepRow:
    """A step, and how often it was started; its output is kept as JSON text, which nobody can change."""

    step: Step
    output: str = "null"
    tries: int = 1

    @property
    def value(self) -> Step:
        """The step as the domain knows it."""
        return replace(self.step, output=json.loads(self.output))
