"""Tool schemas in a provider's form, made once for each tool, because every request offers the same tools."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property, lru_cache

from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from keepsaid.ports.model import Tool

_KEPT_MAX = 1_024


def definition_of(tool: Tool) -> ToolDefinition:
    """Return a tool as the library takes it: the same object for each tool with the same name, text and schema."""
    return _definition(tool.name, tool.description, json.dumps(dict(tool.schema)))


@lru_cache(_KEPT_MAX)
def _definition(name: str, description: str, schema: str) -> ToolDefinition:
    return ToolDefinition(name=name, description=description, parameters_json_schema=json.loads(schema))


class TransformsOnce(Model):
    """A mixin for models of the library: a tool's schema is transformed for the provider once, not in each request."""

    def customize_request_parameters(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        """Return the parameters of a request in the form that the provider takes."""
        offered = model_request_parameters.function_tools
        if len(self._transformed) > _KEPT_MAX:
            self._transformed.clear()
        new = [tool for tool in offered if id(tool) not in self._transformed]
        made = super().customize_request_parameters(replace(model_request_parameters, function_tools=new))
        for tool, transformed in zip(new, made.function_tools, strict=True):
            self._transformed[id(tool)] = tool, transformed
        return replace(made, function_tools=[self._transformed[id(tool)][1] for tool in offered])

    @cached_property
    def _transformed(self) -> dict[int, tuple[ToolDefinition, ToolDefinition]]:
        """By the id of a definition: that definition, which keeps its id taken, and what it is transformed to."""
        return {}
