"""Sections: what the parts of the tree of settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of the tree."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)
