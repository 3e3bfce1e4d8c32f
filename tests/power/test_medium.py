"""The medium: what is synced is left by every cut, what is not by some."""

from __future__ import annotations

from pathlib import Path
from random import Random

from keepsaid_testkit.power.medium import SECTOR, Medium, Resized, Written

NEVER = 1 << 30
OLD, NEW = b"o" * SECTOR * 4, b"n" * SECTOR * 4


def left(medium: Medium, folder: Path, cuts: int = 200) -> list[dict[str, bytes]]:
    """What each of many cuts would leave."""
    images = []
    for seed in range(cuts):
        place = folder / str(seed)
        place.mkdir()
        medium.leave(place, Random(seed))
        images.append({path.name: path.read_bytes() for path in place.iterdir()})
    return images


def begun(*, honest: bool = True) -> Medium:
    """A medium with one file, synced, and its name with it."""
    medium = Medium(NEVER, honest=honest)
    medium.create("file")
    medium.change("file", Written(0, OLD))
    medium.sync("file")
    medium.sync_names()
    return medium


def test_what_is_synced_is_left(tmp_path: Path) -> None:
    medium = begun()
    medium.change("file", Written(SECTOR, b"more"))
    medium.change("file", Resized(SECTOR * 2))
    medium.sync("file")
    kept = OLD[:SECTOR] + b"more" + OLD[SECTOR + 4 : SECTOR * 2]
    assert left(medium, tmp_path) == [{"file": kept}] * 200


def test_what_is_not_synced_is_left_whole_torn_or_not_at_all(tmp_path: Path) -> None:
    medium = begun()
    medium.change("file", Written(0, NEW))
    images = [image["file"] for image in left(medium, tmp_path)]
    assert {OLD, NEW} < set(images)
    torn = [image for image in images if image not in (OLD, NEW)]
    sectors = {image[at : at + SECTOR] for image in torn for at in range(0, len(image), SECTOR)}
    assert {OLD[:SECTOR], NEW[:SECTOR]} < sectors, "torn at sectors, some of them rubbish"
    assert all(len(image) == len(OLD) for image in images)


def test_a_later_write_can_be_left_without_an_earlier_one(tmp_path: Path) -> None:
    medium = begun()
    medium.change("file", Written(0, b"1"))
    medium.change("file", Written(SECTOR, b"2"))
    found = {image["file"][0:1] + image["file"][SECTOR : SECTOR + 1] for image in left(medium, tmp_path)}
    assert {b"oo", b"1o", b"o2", b"12"} <= found


def test_of_two_writes_to_one_place_either_can_be_last(tmp_path: Path) -> None:
    medium = begun()
    medium.change("file", Written(0, b"1"))
    medium.change("file", Written(0, b"2"))
    assert {b"o", b"1", b"2"} <= {image["file"][0:1] for image in left(medium, tmp_path)}


def test_a_name_that_is_not_synced_may_be_missing(tmp_path: Path) -> None:
    medium = begun()
    medium.create("log")
    medium.change("log", Written(0, NEW))
    medium.sync("log")
    assert {image.get("log") for image in left(medium, tmp_path)} == {NEW, None}


def test_a_deleted_file_may_be_back_until_its_folder_is_synced(tmp_path: Path) -> None:
    medium = begun()
    medium.delete("file", synced=False)
    medium.create("file")
    medium.change("file", Written(0, NEW))
    medium.sync("file")
    (tmp_path / "before").mkdir()
    assert {image.get("file") for image in left(medium, tmp_path / "before")} == {OLD, None, NEW}
    medium.sync_names()
    (tmp_path / "after").mkdir()
    assert {image.get("file") for image in left(medium, tmp_path / "after")} == {NEW}


def test_a_lying_disk_owes_everything(tmp_path: Path) -> None:
    assert {image.get("file") for image in left(begun(honest=False), tmp_path)} > {None, OLD, b""}


def test_after_the_cut_nothing_arrives(tmp_path: Path) -> None:
    medium = Medium(4)
    medium.create("file")
    medium.sync_names()
    assert medium.change("file", Written(0, OLD))
    assert not medium.sync("file"), "the change that the cut strikes is begun, and never ends"
    assert not medium.change("file", Written(0, NEW))
    assert medium.dead()
    assert {image["file"] for image in left(medium, tmp_path)} > {b"", OLD}
