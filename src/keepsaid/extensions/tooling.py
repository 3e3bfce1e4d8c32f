"""Tools made of methods: name, docstring, and a schema from the parameters and their types."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from pydantic import ConfigDict, ValidationError, create_model
from pydantic.errors import PydanticUserError

from keepsaid.domain.prompt import Json
from keepsaid.domain.text import cut
from keepsaid.errors import ExtensionError, ToolError
from keepsaid.extensions.declare import ToolMark
from keepsaid.ports.model import Tool

_LIMIT_S_MAX = 600.0
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def tool_of(method: Callable[..., Awaitable[Any]], mark: ToolMark) -> Tool:
    """The tool that a marked method is. Raises ExtensionError where the model could not know how to call it."""
    name = mark.name or method.__name__
    if not inspect.iscoroutinefunction(method):
        raise ExtensionError(f"the tool {name} must be an async method")
    described = inspect.cleandoc(method.__doc__ or "")
    if not described:
        raise ExtensionError(f"the tool {name} has no docstring: the model would not know what it does")
    if not 0 < mark.limit_s <= _LIMIT_S_MAX or mark.chars_max < 1:
        raise ExtensionError(f"the tool {name} needs a time limit of up to {_LIMIT_S_MAX:g} s and an output limit")
    arguments = _arguments(method, name)

    async def run(given: dict[str, Json]) -> str:
        try:
            read = arguments.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ToolError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        said = await method(**{key: getattr(read, key) for key in arguments.model_fields})
        return cut(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str), mark.chars_max)

    schema = arguments.model_json_schema()
    schema.pop("title", None)
    return Tool(name, described, schema, run, mark.kind, mark.limit_s, serves=mark.serves, output=mark.output)


def _arguments(method: Callable[..., Any], name: str) -> Any:
    try:
        hints = get_type_hints(method)
        fields: dict[str, Any] = {}
        for one in inspect.signature(method).parameters.values():
            if one.kind not in _NAMED:
                raise ExtensionError(f"the tool {name} takes *{one.name}, which has no schema")
            default = ... if one.default is inspect.Parameter.empty else one.default
            fields[one.name] = (hints.get(one.name, str), default)
        return create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (NameError, TypeError, ValueError, PydanticUserError) as error:
        raise ExtensionError(f"the tool {name} has parameters without a schema ({type(error).__name__})") from error
