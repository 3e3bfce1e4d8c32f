"""An export for a person holds what that person may hear, after whatever was said, joined, widened and forgotten."""

from __future__ import annotations

from pathlib import Path

from tests.property.memory_stage import stage
from tests.property.scope_walk import Subject, Walk
from tests.property.scope_world import OWNER, PEOPLE, Ear, Known, World

from keepsaid.domain.bundle import BundleEntry, Edge, Record, Tombstone
from keepsaid.domain.visibility import Person
from keepsaid.ports.memory_store import BundleContents
from keepsaid.services.bundles import listeners_of

READS, SEEDS = 120, (1,)


def told_to(world: World, person: str, one: Known) -> bool:
    """What the person hears in a direct chat, and what was said in one with that person, in plain Python."""
    with_them = one.chat_of in world.same(person) and one.reach.kind in ("conversation", "lane")
    return world.hears(Ear(None, person, True, True), one) or (one.there and not one.outside and with_them)


async def leaks(walk: Walk, *persons: str) -> list[str]:
    """What an export for these persons holds and may not, or lacks."""
    records = await walk.store.bundles.export(listeners_of(persons), _read)
    found = {one.memory.new.key: one for one in records if isinstance(one, BundleEntry)}
    known = walk.world.known.values()
    wanted = {one.key for one in known if any(told_to(walk.world, person, one) for person in persons)}
    odd = [f"{persons} {key}" for key in sorted(wanted ^ set(found))]
    for one in records:
        match one:
            case Edge() if not {one.source, one.target} <= wanted:
                odd.append(f"{persons} {one}")
            case BundleEntry() if one.replaced_by and one.replaced_by not in wanted:
                odd.append(f"{persons} {one.memory.new.key} was replaced by {one.replaced_by}")
            case Tombstone():
                odd.append(f"{persons} {one}")
            case Person() if not any(
                walk.world.same(person) >= {each.name for each in one.identities} for person in persons
            ):
                odd.append(f"{persons} {one}")
    return odd


def _read(told: BundleContents) -> list[Record]:
    return list(told.records)


def test_an_export_tells_nobody_what_is_not_for_them(tmp_path: Path) -> None:
    asked = 0
    for seed in SEEDS:
        (tmp_path / str(seed)).mkdir()
        with stage(tmp_path / str(seed)) as scene:
            walk = Walk(Subject(scene.store), seed)
            scene.run(walk.run(READS))
            for persons in (*((one,) for one in (OWNER, *PEOPLE)), (PEOPLE[0], PEOPLE[4])):
                assert scene.run(leaks(walk, *persons)) == []
                asked += 1
    assert asked == len(SEEDS) * (len(PEOPLE) + 2)
