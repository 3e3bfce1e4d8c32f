"""(short: wiring alone) Files of an instance: what fetches them, and who writes down what is said in recordings."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.adapters.models.speech import SpeechEndpoint
from keepsaid.config import Config
from keepsaid.config.services import FilesConfig
from keepsaid.extensions.loaded import Active, ExtensionTranscriber, extension_id_of
from keepsaid.pipeline.fetching import FetchDeps, FetchTerms, FileFetcher
from keepsaid.ports.channel import Channel
from keepsaid.ports.model import Transcriber


def fetcher_of(config: Config, deps: FetchDeps, channels: Mapping[str, Channel], active: Active) -> FileFetcher:
    """What fetches files, as the settings say; without `files.fetch` each is left where it is."""
    files = config.files
    terms = FetchTerms(files.bytes_max, files.timeout_s, files.transcriber_timeout_s, files.fetch)
    return FileFetcher(deps, channels, terms, transcriber_of(files, active))


def transcriber_of(files: FilesConfig, active: Active) -> Transcriber | None:
    """Who writes down what is said in recordings; None for nobody."""
    if files.transcriber == "none":
        return None
    if files.transcriber == "endpoint":
        key = files.transcriber_key.get_secret_value() if files.transcriber_key else None
        return SpeechEndpoint(files.transcriber_url, files.transcriber_model, key)
    return ExtensionTranscriber(extension_id_of(files.transcriber), active)
