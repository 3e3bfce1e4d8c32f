"""Facts that change again and again, said in one chat and asked in another: what a model is shown holds now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.figures import Figures

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.services.memories import SearchRequest

_CHANGES = 200
_FIRST = Origin("terminal", "default", "first", "ann", "Ann", direct=True, trust=Trust.OWNER)
_SECOND = replace(_FIRST, channel="http", conversation="second")
_NAME_WORDS = (
    "Alma Bruno Clara Dario Elin Fabio Greta Hugo Ines Jonas Kira Lars Mila Nils Olga Pavel Rosa Sven Tilda Udo"
)
_CITY_WORDS = "Lisbon Porto Braga Oslo Bergen Madrid Seville Turin Genoa Lyon Lille Utrecht Leiden Ghent Graz Linz"
_NAMES, _CITIES = _NAME_WORDS.split(), _CITY_WORDS.split()
_SLOTS: dict[str, tuple[tuple[str, ...], str, list[str]]] = {
    "lives in": (("I live in {}", "I moved to {}", "I've just moved to {}"), "Where do I live now?", _CITIES),
    "works at": (
        ("I work at {}", "I now work for {}"),
        "Where do I work?",
        [f"{name}soft" for name in _NAMES],
    ),
    "boss": (("My boss is {}", "My boss is now {}"), "Who is my boss?", [f"{name} Silva" for name in _NAMES]),
    "dentist": (("My dentist is Dr. {}",), "What is the name of my dentist?", [f"{name} Weber" for name in _NAMES]),
    "dog": (
        ("My dog is called {}", "my dog's name is {}"),
        "What is my dog called?",
        [f"{name}bear" for name in _NAMES],
    ),
    "shoe size": (("My shoe size is {}",), "What is my shoe size?", [str(n) for n in range(36, 56)]),
}


@dataclass
class Listening:
    """Keeps what it was shown: memory, and the talk of the lane."""

    name: str = "test/listening"
    shown: list[ModelRequest] = field(default_factory=list)

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        delta("")
        self.shown.append(request)
        return ModelAnswer("I see.", usage=Usage(9, 3), model=self.name)


@asynccontextmanager
async def running(root: Path, model: Listening) -> AsyncIterator[Instance]:
    quiet = {"collection": {"extractor": "rules"}, "bulletin": {"enabled": False}, "server": {"port": 0}}
    config = Config(**quiet, buffer={"window_ms": 0}, memory={"deadline_ms": 10_000})  # a slow machine tells nothing
    async with opened(Home.at(root), config, model) as instance:
        await instance.start()
        yield instance


async def say(instance: Instance, text: str, origin: Origin) -> None:
    await instance.services.asking.ask(Inbound(origin, Content(text.encode(), text), priority=10))
    while await instance.recorder.catch_up():
        pass


def _stale(lines: list[str], values: list[str], current: str) -> bool:
    """Whether a line says that a former value holds: it is not marked as past, and does not say the current one too."""
    told = (line for line in lines if line.startswith("[") and "until" not in line and current not in line)
    return any(value in line.split() or value in line for line in told for value in values if value != current)


async def test_what_a_model_is_shown_holds_now(tmp_path: Path, figures: Figures) -> None:
    """In the same chat after a reset, and in another chat: less than 2 % of what is shown is stale, little missing."""
    chance, model, now = Random(19), Listening(), dict[str, str]()
    counts = dict.fromkeys(("asked", "stale", "missing", "searched", "stale_in_search"), 0)
    async with running(tmp_path, model) as instance:
        for n in range(_CHANGES):
            slot = chance.choice(list(_SLOTS))
            forms, question, values = _SLOTS[slot]
            value = chance.choice([one for one in values if one != now.get(slot)])
            told, other = (_FIRST, _SECOND) if chance.random() < 0.7 else (_SECOND, _FIRST)
            await say(instance, chance.choice(forms).format(value), told)
            now[slot] = value
            if n % 5 != 4:
                continue
            place = other
            if chance.random() < 0.5:
                await say(instance, "/reset", told)
                place = told
            asked = chance.choice(list(now))
            _, question, values = _SLOTS[asked]
            await say(instance, question, place)
            prompt = next(one.prompt for one in reversed(model.shown) if question in one.prompt.user)
            lines = [line for line in prompt.recalled.splitlines() if ": " in line]
            counts["asked"] += 1
            counts["stale"] += _stale(lines, values, now[asked])
            here = [*lines, prompt.user, *(record.text for record in prompt.history)]
            counts["missing"] += not any(now[asked] in line for line in here)
            hits = (await instance.services.search.search(SearchRequest(question, 5))).hits
            about = [hit.memory for hit in hits if any(one in hit.memory.text for one in values)]
            counts["searched"] += 1
            counts["stale_in_search"] += bool(about) and now[asked] not in about[0].text
    figures(changes=_CHANGES, **counts)
    assert counts["stale"] <= 0.02 * counts["asked"], counts
    assert counts["stale_in_search"] <= 0.02 * counts["searched"], counts
    assert counts["missing"] <= 0.02 * counts["asked"], counts
