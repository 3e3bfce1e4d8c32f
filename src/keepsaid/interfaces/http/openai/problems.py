"""Errors in OpenAI's form: `{"error": {"message", "type", "param", "code"}}`, from the tree of errors (A10)."""

from __future__ import annotations

from starlette.responses import JSONResponse

from keepsaid import errors
from keepsaid.interfaces.http import responses

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {401: "invalid_api_key", 413: "request_too_large", 429: "rate_limit_exceeded"}
_RETRY_S = {429: "1", 503: "5"}
_PROVIDER = {
    errors.ModelTimeout: "the provider did not answer in time",
    errors.ModelUnreachable: "the provider cannot be reached",
}
"""What a client reads of a provider: where it is concerns the owner."""


class BadParameter(responses.BadRequest):
    """A parameter of a call to the OpenAI-compatible endpoint is missing, or has a value that is not supported."""

    code = "KS-HTTP-PARAM"
    hint = "see docs/use/reference/openai.md"

    def __init__(self, what: str, param: str | None = None) -> None:
        super().__init__(what)
        self.param = param


class NoEarlierResponse(BadParameter):
    """The response that a call goes on after was deleted, or is none of this caller."""

    code = "KS-HTTP-EARLIER"

    def __init__(self, what: str) -> None:
        super().__init__(what, "previous_response_id")


class NoSuchModel(responses.NotFound):
    """There is no such model, or the key may not use it."""

    code = "KS-HTTP-MODEL"
    hint = "GET /v1/models lists the models"


_NAMED = {NoSuchModel: "model_not_found", NoEarlierResponse: "previous_response_not_found"}
"""Errors that the protocol has a code for."""


def status_of(error: errors.KeepsaidError) -> int:
    """The HTTP status of an error, of those that OpenAI's clients know."""
    if isinstance(error, errors.ModelError | errors.EmbedderError):
        return 503
    found = responses.status_of(error)
    return 400 if found == 422 else found


def openai_problem(error: errors.KeepsaidError, *, owner: bool = False) -> JSONResponse:
    """The response for an error; `owner` says whether the caller is the owner."""
    status = status_of(error)
    headers = {"Retry-After": _RETRY_S[status]} if status in _RETRY_S else responses.challenge_of(error)
    return JSONResponse(error_body(error, owner=owner), status, headers)


def error_body(error: errors.KeepsaidError, *, owner: bool = False) -> dict[str, object]:
    """The JSON of an error, as it also stands at the end of a stream that breaks off."""
    status = status_of(error)
    message = responses.shown_title(error, owner=owner)
    if isinstance(error, errors.ModelError):
        message = next((text for kind, text in _PROVIDER.items() if isinstance(error, kind)), "the provider failed")
    if isinstance(error, errors.EmbedderError):
        message = "the embedder cannot answer"
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    named = next((code for one, code in _NAMED.items() if isinstance(error, one)), "")
    code = named or _CODES.get(status, error.code)
    return {"error": {"message": message, "type": kind, "param": getattr(error, "param", None), "code": code}}
