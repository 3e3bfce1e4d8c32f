"""Skills: written know-how; its index is in every prompt, a body is read when it is needed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill: its name, when to use it, and the text that says how."""

    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class Skills:
    """The skills of an agent, by name, and those that were left out: each a folder with what is wrong with it."""

    known: tuple[Skill, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()

    def named(self, name: str) -> Skill | None:
        """The skill of that name."""
        return next((one for one in self.known if one.name == name), None)
