"""`@frozen` makes what `@dataclass(frozen=True, slots=True)` makes; each test asks both."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, dataclass_transform

import pytest

from keepsaid.values import frozen


@dataclass_transform(frozen_default=True)
class Decorator(Protocol):
    """Makes a class of values."""

    def __call__(self, cls: type, /) -> Any: ...


@frozen
class Pair:
    """Of module level, so that it can be pickled."""

    left: int
    right: tuple[str, ...] = ()


class Point:
    x: int
    y: int = 0
    note: str = dataclasses.field(default="", compare=False, repr=False)
    tags: list[str] = dataclasses.field(default_factory=list, kw_only=True)
    LIMIT: ClassVar[int] = 9


class Deeper:
    z: int = 5
    y: int = 1


class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number <= 0:
            raise ValueError(self.number)


class Counted:
    text: str
    length: int = dataclasses.field(init=False)
    seen: list[str] = dataclasses.field(init=False, default_factory=list)
    state: str = dataclasses.field(init=False, default="new")

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", len(self.text))


class Empty:
    pass


def of_library(cls: type) -> Any:
    return dataclasses.dataclass(frozen=True, slots=True)(cls)


both = pytest.mark.parametrize("make", [frozen, of_library])


def again(cls: type) -> type:
    """A class of its own with the same body: a decorator changes the fields that it finds."""
    body = {name: copy.copy(value) for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    return type(cls.__name__, cls.__bases__, body)


@both
def test_values_show_and_equal_themselves_by_their_fields(make: Callable[[type], Any]) -> None:
    cls = make(again(Point))
    assert repr(cls(1, y=2, note="seen", tags=["a"])) == "Point(x=1, y=2, tags=['a'])"
    assert cls(1, note="a") == cls(1, note="b")
    assert cls(1) != cls(2)
    assert cls(1) != (1, 0, [])
    assert cls(1).tags is not cls(1).tags
    assert cls.LIMIT == 9
    with pytest.raises(TypeError, match="unhashable"):
        hash(cls(1))


@both
def test_values_hash_by_their_fields(make: Callable[[type], Any]) -> None:
    cls = make(again(Positive))
    assert {cls(1), cls(1), cls(2)} == {cls(2), cls(1)}
    assert len({cls(1), cls(1), cls(2)}) == 2


@both
def test_values_do_not_change(make: Callable[[type], Any]) -> None:
    one = make(again(Point))(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.x
    assert not hasattr(one, "__dict__")


@both
@pytest.mark.parametrize("args", [(), (1, 2, 3, 4), (1, 2, "", [])])
def test_missing_and_superfluous_arguments_are_refused(make: Callable[[type], Any], args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"Point.__init__\(\)"):
        make(again(Point))(*args)


@both
def test_unknown_names_are_refused(make: Callable[[type], Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        make(again(Point))(1, unknown=2)


@both
def test_the_first_value_is_checked_as_every_other(make: Callable[[type], Any]) -> None:
    cls = make(again(Positive))
    for number in (0, -1):
        with pytest.raises(ValueError, match=str(number)):
            cls(number)
    assert cls(1).number == 1


@both
def test_fields_that_are_not_given_have_their_defaults(make: Callable[[type], Any]) -> None:
    cls = make(again(Counted))
    assert repr(cls("abc")) == "Counted(text='abc', length=3, seen=[], state='new')"
    assert cls("a").seen is not cls("a").seen
    assert dataclasses.replace(cls("abc"), text="abcd").length == 4
    with pytest.raises(TypeError, match="positional argument"):
        cls("abc", 3)


@both
def test_a_class_without_fields(make: Callable[[type], Any]) -> None:
    cls = make(again(Empty))
    assert (cls(), hash(cls()), repr(cls())) == (cls(), hash(cls()), "Empty()")


@both
def test_fields_of_a_base_come_first_and_keep_their_place(make: Callable[[type], Any]) -> None:
    base = make(again(Point))
    cls = make(type("Deeper", (base,), dict(vars(again(Deeper)))))
    assert [one.name for one in dataclasses.fields(cls)] == ["x", "y", "note", "tags", "z"]
    assert cls.__match_args__ == ("x", "y", "note", "z")
    assert repr(cls(1, tags=["t"])) == "Deeper(x=1, y=1, tags=['t'], z=5)"
    assert isinstance(cls(1), base)
    assert cls(1) != base(1, 1)


@both
def test_the_standard_library_takes_them_for_its_own(make: Callable[[type], Any]) -> None:
    cls = make(again(Point))
    one = cls(1, tags=["t"])
    assert all(map(dataclasses.is_dataclass, (cls, one)))
    assert dataclasses.asdict(one) == {"x": 1, "y": 0, "note": "", "tags": ["t"]}
    assert dataclasses.replace(one, y=4) == cls(1, 4, tags=["t"])
    assert [(f.name, f.type, f.default, f.kw_only) for f in dataclasses.fields(cls)] == [
        ("x", "int", dataclasses.MISSING, False),
        ("y", "int", 0, False),
        ("note", "str", "", False),
        ("tags", "list[str]", dataclasses.MISSING, True),
    ]
    match one:
        case cls(x, y):
            assert (x, y) == (1, 0)
    assert copy.deepcopy(one) == copy.copy(one) == one


class Holder:
    """Holds a class of values."""

    @frozen
    class Inner:
        """Of a class, by whose name it is shown and found."""

        number: int


def test_values_can_be_pickled() -> None:
    for value in (Pair(1, ("a",)), Holder.Inner(2)):
        assert pickle.loads(pickle.dumps(value)) == value
    assert repr(Holder.Inner(2)) == "Holder.Inner(number=2)"


@both
def test_a_default_that_can_change_is_refused(make: Callable[[type], Any]) -> None:
    with pytest.raises(ValueError, match="default_factory"):
        make(type("Shared", (), {"__annotations__": {"items": "list[int]"}, "items": []}))


@both
def test_a_method_of_the_class_stands(make: Callable[[type], Any]) -> None:
    cls = make(type("Quiet", (), {"__annotations__": {"a": "int"}, "__repr__": lambda self: f"<{self.a}>"}))
    assert repr(cls(3)) == "<3>"


@both
def test_a_value_that_holds_itself_can_be_shown(make: Callable[[type], Any]) -> None:
    one = make(again(Point))(1)
    one.tags.append(one)
    assert repr(one) == "Point(x=1, y=0, tags=[...])"
