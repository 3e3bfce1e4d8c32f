"""Frozen values: classes as `@dataclass(frozen=True, slots=True)` makes them, in a twentieth of its time.

`dataclass` writes and compiles six methods for each class, and a start makes hundreds of classes. Those made here share
their methods; the `__init__` of a class is compiled when its first value is made (docs/develop/adr/0040).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, replace
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, Final, NoReturn, TypeVar, cast, dataclass_transform

_Class = TypeVar("_Class", bound=type)
_Fields = dict[str, Any]
"""Fields by name, each a `Field`; Any, as what `dataclasses` itself writes into them has no types."""

_FIELDS: Final = "__dataclass_fields__"


@dataclass(frozen=True)
class _Sample:
    value: int


_SAMPLE: Final = fields(_Sample)[0]
_KIND: Final = "_field_type"
"""By this attribute the standard library tells a field from a class variable."""


@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def frozen(cls: _Class) -> _Class:
    """Make `cls` a class of frozen values with slots, equal and hashed by their fields.

    `dataclasses` and `match` take it for one of theirs. Annotations are strings (`from __future__ import annotations`).
    The class is made a second time, as `dataclass` does it for slots, so none of its methods may say `super()`.
    Not known here are `InitVar`, `KW_ONLY`, `hash=` of a field, and bases that are dataclasses without slots; a field
    without a default after one with a default is found when the first value is made.

    Raises:
        ValueError: a default can be changed, and all values would share it.
    """
    namespace = dict(cls.__dict__)
    own = _own_fields(namespace)
    known: _Fields = {}
    slots: set[str] = set()
    for base in reversed(cls.__mro__[1:]):
        known |= base.__dict__.get(_FIELDS, {})
        slots.update(base.__dict__.get("__slots__", ()))
    known |= own
    for name in ("__dict__", "__weakref__", *own):
        namespace.pop(name, None)
    compared = [name for name, one in known.items() if one.compare]
    namespace |= {
        "__qualname__": cls.__qualname__,
        "__slots__": tuple(name for name in own if name not in slots),
        "__match_args__": tuple(name for name, one in known.items() if one.init and not one.kw_only),
        "__value_key__": attrgetter(*compared) if compared else type,
        "__dataclass_params__": _Sample.__dict__["__dataclass_params__"],
        _FIELDS: known,
    }
    made: Any = type(cls)(cls.__name__, cls.__bases__, _METHODS | namespace)
    if "__init__" not in namespace:
        made.__init__ = _first_init(made)
    return cast("_Class", made)


def _own_fields(namespace: dict[str, Any]) -> _Fields:
    """The fields that a class adds to those of its bases."""
    own: _Fields = {}
    for name, annotation in namespace.get("__annotations__", {}).items():
        if not annotation.startswith(("ClassVar", "typing.ClassVar")):
            default = namespace.get(name, MISSING)
            one: Any = default if isinstance(default, Field) else field(default=default)
            if one.default.__class__.__hash__ is None:
                raise ValueError(f"all values would share the default of {name}: give it a default_factory")
            one.name, one.type, one.kw_only = name, annotation, one.kw_only is True
            setattr(one, _KIND, getattr(_SAMPLE, _KIND))
            own[name] = one
    return own


def _first_init(cls: Any) -> Callable[..., None]:
    """An `__init__` that gives its place to the one it compiles for the fields of `cls`."""

    def init(self: object, *args: Any, **named: Any) -> None:
        cls.__init__ = compiled = _compiled_init(cls)
        compiled(self, *args, **named)

    return init


def _compiled_init(cls: Any) -> Callable[..., None]:
    names: dict[str, Any] = {"_MISSING": MISSING}
    positional, keywords, steps = ["self"], ["*"], []
    for name, one in getattr(cls, _FIELDS).items():
        names[f"_set_{name}"] = getattr(cls, name).__set__
        names[f"_default_{name}"], names[f"_make_{name}"] = one.default, one.default_factory
        has_factory, has_default = one.default_factory is not MISSING, one.default is not MISSING
        if not one.init:
            value = f"_make_{name}()" if has_factory else f"_default_{name}" if has_default else ""
            steps += [f"    _set_{name}(self, {value})\n"] if value else []
            continue
        value = f"_make_{name}() if {name} is _MISSING else {name}" if has_factory else name
        given = f"{name}=_MISSING" if has_factory else f"{name}=_default_{name}" if has_default else name
        (keywords if one.kw_only else positional).append(given)
        steps.append(f"    _set_{name}(self, {value})\n")
    if hasattr(cls, "__post_init__"):
        steps.append("    self.__post_init__()\n")
    parameters = ", ".join(positional + (keywords if len(keywords) > 1 else []))
    exec(  # noqa: S102 - as `dataclass` does it, with names from source code
        f"def __init__({parameters}):\n{''.join(steps) or '    pass'}", names
    )
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _eq(self: Any, other: Any) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    key: Callable[[object], object] = self.__value_key__
    return key(self) == key(other)


def _hash(self: Any) -> int:
    return hash(self.__value_key__(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_change(self: object, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r} of {type(self).__name__}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


_METHODS: Final[dict[str, Any]] = {
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse_change,
    "__delattr__": _refuse_change,
    "__getstate__": _state,
    "__setstate__": _set_state,
    "__replace__": replace,
}
