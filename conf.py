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

NAVIGATION = {
    "Begin": ("use/index", "use/start", "use/install"),
    "Tutorials": (
        "use/tutorials/assistant",
        "use/tutorials/sidecar",
        "use/tutorials/library",
        "use/tutorials/extension",
    ),
    "How to": ("use/how-to/status-and-why", "use/how-to/*"),
    "Concepts": ("use/concepts/path-of-a-message", "use/concepts/memory", "use/concepts/*"),
    "Run it": ("use/operate", "use/troubleshooting", "use/security", "use/faq"),
    "Reference": ("use/reference/*",),
    "Develop": ("develop/index", "develop/architecture", "develop/guarantees", "develop/*", "develop/adr/index"),
}
"""The pages of each part of the navigation; a star is all pages of a folder that are not named before it."""


def add_navigation(_app: Any, name: str, source: list[str]) -> None:
    """Append the tree of pages to an index, so that the Markdown is readable without Sphinx."""
    if name == "index":
        trees = (f":caption: {caption}\n:glob:\n\n" + "\n".join(pages) for caption, pages in NAVIGATION.items())
    elif name == "develop/adr/index":
        trees = iter([":glob:\n\n0*"])
    else:
        return
    source[0] += "".join(f"\n```{{toctree}}\n:hidden:\n{tree}\n```\n" for tree in trees)


def setup(app: Any) -> None:
    """Register the navigation with Sphinx."""
    app.connect("source-read", add_navigation)
