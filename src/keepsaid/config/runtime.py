"""Settings of the process that serves."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section


class RuntimeConfig(Section):
    """The process of `keepsaid serve`."""

    watchdog_s: float = Field(5.0, ge=0.0, le=3_600.0, allow_inf_nan=False)
    """If the event loop stands still for so many seconds, where it stands is logged; 0 logs nothing."""
