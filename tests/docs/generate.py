"""Writes the pages that are made from code: `python -m tests.docs.generate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.docs import (
    commands_page,
    config_page,
    doctor_texts,
    errors_page,
    events_page,
    extensions_page,
    help_texts,
    ports_page,
    status_texts,
    telemetry_page,
    why_texts,
)  # fmt: skip
from tests.docs.markdown import ROOT

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/use/reference/commands.md": commands_page.page,
    "docs/use/reference/config.md": config_page.page,
    "docs/use/reference/errors.md": errors_page.page,
    "docs/use/reference/events.md": events_page.page,
    "docs/use/reference/extensions.md": extensions_page.page,
    "docs/use/reference/telemetry.md": telemetry_page.page,
    "docs/develop/reference-ports.md": ports_page.page,
    "tests/docs/help.txt": help_texts.page,
    "tests/docs/doctor.txt": doctor_texts.page,
    "tests/docs/status.txt": status_texts.page,
    "tests/docs/why.txt": why_texts.page,
}
"""What is made from what."""


def main() -> None:
    """Write every page."""
    for name, made in PAGES.items():
        (ROOT / name).write_text(made(), "utf-8")


if __name__ == "__main__":
    main()
