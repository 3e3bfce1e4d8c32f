"""Loaded extensions: their state and faults, the status file about them, and those that serve memory as a model."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from keepsaid.domain import memory, session
from keepsaid.errors import EmbedderError, KeepsaidError, ModelError, ModelMalformed, ModelUnavailable
from keepsaid.extensions import discovery, provided
from keepsaid.extensions.manifest import Manifest
from keepsaid.extensions.provided import Provided
from keepsaid.ports import memory_store, model
from keepsaid.ports.extension import DescribedAgent, TranscriberProvider
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_FRAMES_MAX = 20
_REASON_CHARS_MAX = 500


class State(StrEnum):
    """Where an extension stands."""

    OFF = "off"
    FOUND = "found"
    LOADED = "loaded"
    READY = "ready"
    UNREADY = "needs setup"
    ACTIVE = "active"
    STOPPED = "stopped"
    QUARANTINED = "quarantined"


class Phase(StrEnum):
    """What was being done when it failed."""

    MANIFEST = "manifest"
    DEPENDENCIES = "dependencies"
    SETTINGS = "settings"
    IMPORT = "import"
    CREATE = "create"
    INITIALIZE = "initialize"
    PROVIDE = "provide"
    START = "start"
    HEALTH = "health"
    STOP = "stop"


@frozen
class ExtensionFault:
    """Why an extension is quarantined: in which phase, the reason in a sentence, and where it was raised."""

    phase: Phase
    reason: str
    trace: str = ""


def fault_of(phase: Phase, error: BaseException) -> ExtensionFault:
    if isinstance(error, KeepsaidError):
        return ExtensionFault(phase, error.what)
    said = " ".join(str(error).split())[:_REASON_CHARS_MAX]
    reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return ExtensionFault(phase, reason, "".join(traceback.format_exception(error, limit=-_FRAMES_MAX)))


@dataclass(slots=True)
class Misses:
    """How often in a row a text for prompts took too long, and until when it is left out (monotonic milliseconds)."""

    count: int = 0
    until_ms: float = 0.0


@dataclass(slots=True)
class LoadedExtension:
    """One extension: where it was found, its state, and what it provides.

    `notes` say, by subject, what does not work while it is active; `misses` are those of its texts, by method.
    """

    found: discovery.FoundExtension
    state: State = State.FOUND
    fault: ExtensionFault | None = None
    made: Any = None
    context: provided.RuntimeExtensionContext | None = None
    provided: Provided = field(default_factory=Provided)
    needs: tuple[str, ...] = ()
    unwell: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    misses: dict[str, Misses] = field(default_factory=dict)
    took_ms: dict[Phase, float] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.found.id

    @property
    def manifest(self) -> Manifest:
        """Its manifest; only where there is one."""
        assert self.found.manifest is not None, "an extension without a manifest goes nowhere"
        return self.found.manifest

    @property
    def active(self) -> bool:
        return self.state is State.ACTIVE

    @property
    def why(self) -> str:
        """Why it is not active, for what depends on it."""
        if self.fault is not None:
            return f"it is quarantined ({self.fault.phase}: {self.fault.reason})"
        if self.state is State.UNREADY:
            return f"it has to be set up first: {'; '.join(self.needs)}"
        return f"it is {self.state}"

    def call(self, name: str, *given: Any) -> Callable[[], Awaitable[Any]] | None:
        """One of its methods, to be called; None where it has none of this name."""
        method = getattr(self.made, name, None)
        return None if method is None else lambda: method(*given)


def described_agent(one: LoadedExtension, guests: Mapping[str, LoadedExtension]) -> DescribedAgent | None:
    """The agent that the manifest of an extension describes; it may call its tools, and those of its dependencies."""
    if (described := one.manifest.agent) is None:
        return None
    near = [one, *(guests[id_] for id_ in one.manifest.depends_on)]

    def tools() -> Sequence[model.Tool]:
        return [tool for each in near for tool in each.provided.tools if tool.name in described.tools]

    limits = described.limits.steps_max, described.limits.tokens_max, described.limits.time_s
    listed = frozenset(described.tools), "owner" in one.manifest.reads
    return DescribedAgent(described.instructions, tools, described.model, *limits, *listed)


def shape_of(extension: LoadedExtension) -> dict[str, Any]:
    """One extension as programs read it."""
    return {
        **found_shape(extension.found),
        "state": extension.state.value,
        "phase": extension.fault.phase.value if extension.fault else None,
        "reason": extension.fault.reason if extension.fault else None,
        "trace": extension.fault.trace if extension.fault else "",
        "needs": list(extension.needs),
        "notes": list(extension.notes.values()),
        "tools": [tool.name for tool in extension.provided.tools],
        "channels": sorted(extension.provided.channels),
        "took_ms": {phase.value: round(ms, 1) for phase, ms in extension.took_ms.items()},
    }


def found_shape(found: discovery.FoundExtension) -> dict[str, Any]:
    """What is known of one before anything of it was run."""
    manifest = found.manifest
    config = {key: one.model_dump(exclude_defaults=True) for key, one in manifest.config.items()} if manifest else {}
    return {
        "id": found.id,
        "name": manifest.title if manifest else found.id,
        "version": manifest.version if manifest else None,
        "description": manifest.description if manifest else "",
        "source": found.source.value,
        "place": str(found.place),
        "enabled": found.enabled,
        "provides": list(manifest.provides) if manifest else [],
        "depends_on": list(manifest.depends_on) if manifest else [],
        "subscribes": [one.model_dump() for one in manifest.events.subscribes] if manifest else [],
        "schedules": [one.model_dump(exclude_defaults=True) for one in manifest.schedules] if manifest else [],
        "config": config,
        "secrets": dict(manifest.secrets) if manifest else {},
        "reads": list(manifest.reads) if manifest else [],
        "state": State.OFF.value if not found.enabled else State.FOUND.value if manifest else State.QUARANTINED.value,
        "phase": "manifest" if found.problem else None,
        "reason": found.problem or None,
        "trace": "",
        "needs": [],
        "notes": [],
    }


def write(file: Path, pid: int, guests: Iterable[LoadedExtension]) -> None:
    """Write the status of all extensions; a home that cannot be written has none. Raises OSError."""
    told = {"pid": pid, "extensions": [shape_of(extension) for extension in guests]}
    partial = file.with_name(f"{file.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(told, ensure_ascii=False, default=str), "utf-8")
    partial.replace(file)


def read(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """The last written status of each extension, by id; empty when there is none."""
    try:
        return {str(one["id"]): one for one in json.loads(file.read_text("utf-8"))["extensions"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


T = TypeVar("T")
LENT = "ext/"
"""How a setting begins that names an extension."""

_LEAST, _MOST = 0.98, 1.02
"""A vector of length 1, as far as numbers of 32 bits can be."""

_EMBED_S = 60.0
_NUMBER_BYTES = 4
Active = Callable[[], Sequence[LoadedExtension]]


def extension_id_of(setting: str) -> str:
    """Return the id of the extension that a setting names; "" if it names none."""
    return setting.removeprefix(LENT) if setting.startswith(LENT) else ""


class ExtensionEmbedder:
    """Embedder of an extension. Its vectors form a space of their own, whatever name the extension gives it."""

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self._space: memory.VectorSpace | None = None

    async def space(self) -> memory.VectorSpace:
        if self._space is None:
            theirs = await self._call_embedder(lambda one: one.space())
            if not isinstance(theirs, memory.VectorSpace) or theirs.dimension < 1:
                raise EmbedderError(f"the extension {self._id} does not say what vectors it makes")
            self._space = replace(theirs, model=normalise(f"{LENT}{self._id}/{theirs.model}"))
        return self._space

    async def query(self, text: str) -> bytes:
        return self._checked([await self._call_embedder(lambda one: one.query(text))], 1, await self.space())[0]

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        return self._checked(await self._call_embedder(lambda one: one.texts(texts)), len(texts), await self.space())

    async def _call_embedder(self, work: Callable[[memory_store.Embedder], Awaitable[T]]) -> T:
        provider = next((one.provided.embedder for one in self._active() if one.id == self._id), None)
        if provider is None:
            raise EmbedderError(f"the extension {self._id} is not up, or has no embedder", hint="keepsaid ext ls")
        try:
            async with asyncio.timeout(_EMBED_S):
                return await work(provider.embedder())
        except EmbedderError:
            raise
        except Exception as error:  # guard: extension - memory is searched by its words meanwhile
            raise EmbedderError(f"the embedder of {self._id} failed ({type(error).__name__})") from error

    def _checked(self, vectors: Sequence[bytes], many: int, space: memory.VectorSpace) -> Sequence[bytes]:
        if len(vectors) == many and all(_fits(one, space.dimension) for one in vectors):
            return vectors
        raise EmbedderError(f"the embedder of {self._id} made no vectors of {space.dimension} numbers and length 1")


def _fits(vector: bytes, dimension: int) -> bool:
    if not isinstance(vector, bytes) or len(vector) != dimension * _NUMBER_BYTES:
        return False
    return _LEAST < sum(number * number for number in memoryview(vector).cast("f")) < _MOST


class ExtensionTranscriber:
    """Transcriber of an extension: of the one with the id, or of the first that has one."""

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self.name = f"{LENT}{id_}" if id_ else "the transcriber of an extension"

    async def transcribe(self, recording: model.Recording) -> str:
        """The words; "" where no extension can say. Raises a ModelError."""
        if (found := self._provider()) is None:
            if self._id:
                raise ModelUnavailable(f"the extension {self._id} is not up, or has no transcriber")
            return ""
        try:
            return str(await found.transcriber().transcribe(recording))
        except ModelError:
            raise
        except Exception as error:  # guard: extension - the recording is kept, and its words are not known
            raise ModelMalformed(f"the transcriber failed ({type(error).__name__})") from error

    def _provider(self) -> TranscriberProvider | None:
        wanted = (one for one in self._active() if self._id in ("", one.id))
        return next((one.provided.transcriber for one in wanted if one.provided.transcriber is not None), None)


class ExtensionExtractor:
    """Extractor of an extension; while the extension is not active, nothing is read and no attempt is counted."""

    thorough = True

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self.name = f"{LENT}{id_}"

    async def extract(self, passage: session.Passage) -> model.Extracted:
        """The statements in a passage; those that name no record of a person are left out. Raises a ModelError."""
        provider = next((one.provided.extractor for one in self._active() if one.id == self._id), None)
        if provider is None:
            raise ModelUnavailable(f"the extension {self._id} is not up, or has no extractor")
        try:
            found = await provider.extractor().extract(passage)
        except ModelError:
            raise
        except Exception as error:  # guard: extension - the session is read again, and parked in the end
            raise ModelMalformed(f"the extractor of {self._id} failed ({type(error).__name__})") from error
        sources = {one.position for one in passage.sources}
        kept = tuple(one for one in found.statements if one.records and sources.issuperset(one.records))
        return replace(found, statements=kept)
