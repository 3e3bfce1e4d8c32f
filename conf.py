"""Sphinx builds the site of the documentation with this file: `make docs` writes it to build/site."""

from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent / "docs"

project = "keepsaid"
project_copyright = "MIT licence"
extensions = ["myst_parser", "sphinxcontrib.mermaid"]
html_theme = "furo"
html_title = "keepsaid"
html_copy_source = False
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["misc.highlighting_failure"]  # JSON over several lines of a command

_FIRST = (
    "index",
    "start",
    "install",
    "tutorials",
    "how-to",
    "concepts",
    "operate",
    "troubleshooting",
    "security",
    "faq",
)
"""Pages and folders in the order of the navigation; the others follow by name."""


def pages(folder: Path) -> list[Path]:
    """Every page below a folder except its index, in the order of the navigation."""
    found = [path for path in folder.rglob("*.md") if path != folder / "index.md"]
    return sorted(found, key=lambda path: (_place(path.relative_to(folder)), path.as_posix()))


def _place(path: Path) -> int:
    first = path.parts[0].removesuffix(".md")
    return _FIRST.index(first) if first in _FIRST else len(_FIRST)


def add_navigation(_app: Any, name: str, source: list[str]) -> None:
    """Append the tree of pages to an index page, so that the Markdown stays readable without Sphinx."""
    folder = (DOCS / name).parent
    if Path(name).name == "index":
        listed = [DOCS / "use/index.md", DOCS / "develop/index.md"] if folder == DOCS else pages(folder)
        entries = "\n".join(path.relative_to(folder).as_posix() for path in listed)
        source[0] += f"\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def setup(app: Any) -> None:
    """Register the navigation with Sphinx."""
    app.connect("source-read", add_navigation)
