"""One fact stays one slot, however a model names it: 10 facts of a person, each restated under other names."""

from __future__ import annotations

from pathlib import Path

from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Kind, Listener, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid.testing.builders import lane_of

_NAMES = {
    ("lives in", "city", "place of residence", "current city", "location", "city of residence"): (
        "Lisbon",
        "Porto",
        "Braga",
    ),
    ("employer", "works at", "company", "place of work", "employer name", "current employer"): ("Acme", "Globex"),
    ("job", "occupation", "role", "works as", "profession", "job title"): ("nurse", "teacher", "head teacher"),
    ("spouse", "wife", "wife's name", "name of wife", "partner", "married to"): ("Ana", "Ana Silva"),
    ("phone", "phone number", "mobile number", "telephone", "contact number"): ("+351 1", "+351 2"),
    ("email", "e-mail address", "mail", "contact email"): ("a@b.org", "c@d.org"),
    ("birthday", "date of birth", "birth date", "born on"): ("4 May", "5 May"),
    ("favourite coffee", "favorite coffee", "fav coffee"): ("espresso", "flat white"),
    ("diet", "dietary preference", "eating habits"): ("vegetarian", "vegan"),
    ("car", "car model", "vehicle", "drives"): ("Golf", "Zoe"),
}


async def test_varied_names_are_one_slot_and_nothing_stale_holds(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), Config(server={"port": 0}), None) as instance:
        n, current = 0, set()
        for names, values in _NAMES.items():
            for at, name in enumerate(names):
                n += 1
                value = values[min(at, len(values) - 1)]
                memory = NewMemory(
                    key=f"turn:{n}:0",
                    kind=Kind.FACT,
                    text=f"Ann's {name}: {value}",
                    scope="person:owner",
                    trust=Trust.OWNER,
                    lane=lane_of(),
                    speaker="Ann",
                    speaker_id="owner",
                    subject="Ann",
                    subject_id="owner",
                    said_at=1_000 * n,
                    attribute=name,
                    value=value,
                    sources=(Source("message", str(n)),),
                )
                await instance.memories.learn([memory], 1_000 * n)
            current.add(values[-1])
        rows = await instance.memories.find(Listener(None, everything=True), (Kind.FACT,), 100)
        assert len([one for one in rows if one.state == "active"]) <= 12
        assert {one.new.value for one in rows if one.state == "active"} == current
