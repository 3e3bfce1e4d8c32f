"""Speech to text by an endpoint that speaks the OpenAI protocol: a provider's, or a server on this machine."""

from __future__ import annotations

import asyncio

from keepsaid.errors import ModelMalformed, ModelRejected, ModelUnavailable
from keepsaid.ports.model import Recording
from keepsaid.text.normal import without_passwords

_LIMIT_S = 120.0
_REFUSED = (400, 401, 403, 404, 413, 415, 422)


class SpeechEndpoint:
    """One model behind `base_url`, asked at `/audio/transcriptions`."""

    def __init__(self, base_url: str, model: str, key: str | None = None) -> None:
        self.name = f"speech/{model}"
        self._base_url = base_url.rstrip("/")
        self._shown = without_passwords(self._base_url)
        self._model = model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    async def transcribe(self, recording: Recording) -> str:
        """The words, "" where nothing is said. Raises a ModelError."""
        import httpx2  # noqa: PLC0415 - a program without recordings starts without

        # loading the certificates of the system takes 30 ms, too long for the loop
        client = await asyncio.to_thread(httpx2.AsyncClient, headers=self._headers, timeout=_LIMIT_S)
        sent = {"file": (recording.name, recording.content, recording.kind)}
        url, asked = f"{self._base_url}/audio/transcriptions", {"model": self._model, "response_format": "json"}
        async with client:
            try:
                answer = await client.post(url, data=asked, files=sent)
            except httpx2.HTTPError as error:
                raise ModelUnavailable(f"{self._shown} cannot be reached ({type(error).__name__})") from error
        if answer.status_code in _REFUSED:
            raise ModelRejected(f"{self._shown} refused a recording ({answer.status_code})")
        if answer.is_error:
            raise ModelUnavailable(f"{self._shown} could not write down a recording ({answer.status_code})")
        try:
            return str(answer.json()["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelMalformed(f"the answer of {self._shown} cannot be read ({type(error).__name__})") from error
