"""Reads a folder of notes of basic-memory: observations and relations as facts, and the notes themselves.

A note is a Markdown file with front matter in YAML: `title`, `permalink`, `type`, `tags`. A list item
`- [category] text #tag (context)` is an observation, and `- relation [[Other note]] (context)` a relation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from keepsaid.services.imports import notes
from keepsaid.services.imports.drafts import Draft, Finding, kind_of_words, name_in, time_in
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.text.normal import digest
from keepsaid.values import frozen

_OBSERVATION = re.compile(r"[ \t]{0,12}[-*][ \t]+\[([^\[\]()\n]{1,100})\][ \t]+(\S.*)")
_RELATION = re.compile(r"[ \t]{0,12}[-*][ \t]+([^\[\]\n]{1,100}?)[ \t]*\[\[([^\[\]\n]{1,200})\]\](.*)")
_TAG = re.compile(r"(?<!\S)#[^\s#()]{1,100}")
_CONTEXT = re.compile(r"\(([^()\n]{1,300})\)[ \t]*\Z")
_LOOKS = re.compile(rb"\A(?:\xef\xbb\xbf)?---\r?\n(?:[^\n]{0,500}\n){0,40}?permalink:[ \t]")
_FIELD = re.compile(r"([A-Za-z_]{1,40}):[ \t]+(\S.*)")
_NOT_PLAIN = ("[", "{", "&", "*", "!", "|", ">", "%", "@", "`")
_HEAD_LINES_MAX = 200
_LINE_CHARS_MAX = 500
_BOXES = frozenset({" ", "x", "X", "-"})
"""Marks of a list of tasks, which are not categories."""


def _is_note(name: PurePosixPath) -> bool:
    return name.suffix == ".md" and not any(part.startswith(".") for part in name.parts)


@frozen
class _Note:
    """A note: its file, its front matter, its text without that, and when it was written."""

    file: str
    head: dict[str, str]
    body: str
    at: int | None

    @property
    def name(self) -> str:
        """Its permalink, or the path of its file."""
        return name_in(self.head, "permalink") or self.file.removesuffix(".md")[-200:]

    @property
    def title(self) -> str:
        """Its title, or the name of its file."""
        return name_in(self.head, "title") or PurePosixPath(self.file).stem[:200]


class BasicMemoryReader:
    """Reads a folder of notes of basic-memory."""

    product = "basic-memory"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether one of the first notes has a permalink in its front matter."""
        return any(_LOOKS.match(files.head(name)) for name in files.named(_is_note)[:50])

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """The observations and relations of each note, and then the note. Raises InputError."""
        if not (names := files.named(_is_note)):
            raise refused(f"{files.path} holds no notes")
        for name in names:
            head, body = _divided(files.text(name))
            times = (time_in(head.get(one), now) for one in ("created", "created_at", "date"))
            at = next((one for one in times if one is not None), None) or files.changed_at(name)
            yield from _findings(_Note(name, head, body, at))


def _divided(text: str) -> tuple[dict[str, str], str]:
    """The front matter of a note, empty where it has none that can be read, and the rest."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return {}, text
    ends = (n for n, line in enumerate(lines[1:_HEAD_LINES_MAX], start=1) if line.strip() == "---")
    if (end := next(ends, None)) is None:
        return {}, text
    return _front_matter(lines[1:end]), "".join(lines[end + 1 :])


def _front_matter(lines: Sequence[str]) -> dict[str, str]:
    """The fields of a front matter that are plain words on one line; lists and everything else of YAML is left out."""
    found = (_FIELD.fullmatch(line.rstrip()) for line in lines if len(line) <= _LINE_CHARS_MAX)
    fields = {one[1]: one[2] for one in found if one and not one[2].startswith(_NOT_PLAIN)}
    return {name: _unquoted(value) for name, value in fields.items()}


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _findings(note: _Note) -> Iterator[Finding]:
    for line in note.body.splitlines():
        if (found := _OBSERVATION.fullmatch(line)) and found[1] not in _BOXES:
            yield _observation(note, found[1].strip(), found[2])
        elif found := _RELATION.fullmatch(line):
            words = f"{note.title} {found[1].strip()} {found[2].strip()}"
            yield _named(note, notes.fact(note.name, words, note.file, note.at), {"relation": found[1].strip()})
    if note.body.strip():
        yield Draft(
            f"{note.name[-160:]}@{digest(note.body).hex()}",
            note.body.strip(),
            note.file,
            said_at=note.at,
            conversation=note.name,
            speaker=note.title,
            outside=True,
            about={"title": note.title},
        )


def _observation(note: _Note, category: str, words: str) -> Draft:
    """An observation as a fact, without its tags and its context, which are kept beside it."""
    context = _CONTEXT.search(words)
    text = _TAG.sub("", words[: context.start()] if context else words)
    draft = notes.fact(note.name, " ".join(text.split()), note.file, note.at, (kind_of_words(category), ""))
    tags = [tag[1:] for tag in _TAG.findall(words)][:50]
    return _named(note, draft, {"category": category, "tags": tags, "context": context[1] if context else ""})


def _named(note: _Note, draft: Draft, about: dict[str, Any]) -> Draft:
    given = {"title": note.title, **{name: value for name, value in about.items() if value}}
    return Draft(draft.ref, draft.text, draft.file, draft.kind, draft.said_at, about=given)
