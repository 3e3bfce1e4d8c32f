"""The routes of the endpoint: off until a key exists, each behind its key, with errors in OpenAI's form (A1, A10)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.principal import Principal, Scope
from keepsaid.interfaces.http import responses
from keepsaid.interfaces.http.bodies import body_of, fields_in
from keepsaid.interfaces.http.calls import OpenRoute, from_outside
from keepsaid.interfaces.http.gate import Gate, KeyWatch
from keepsaid.interfaces.http.openai import completions, embeddings
from keepsaid.interfaces.http.openai import responses as agent
from keepsaid.interfaces.http.openai.chats import ChatSite
from keepsaid.interfaces.http.openai.conversation import speaker_of
from keepsaid.interfaces.http.openai.models import AGENT, PROXY, is_listed, list_models, no_model, show_model
from keepsaid.interfaces.http.openai.problems import BadParameter, openai_problem
from keepsaid.interfaces.http.openai.proxy import MemoryProxy
from keepsaid.interfaces.schema import ANY, TEXT, gives, takes

BODY_MAX = 20_000_000
"""Bytes of the body of a chat completion."""

_ERROR = gives(error=takes("message", "type", message=TEXT, type=TEXT))

Answer = Callable[[ChatSite, Mapping[str, object]], Awaitable[Response]]
"""Answers a call of the agent; raises a KeepsaidError."""


class OpenAIEndpoint:
    """The endpoint of one server; nobody is kept waiting for an answer once `stopping` is set."""

    def __init__(self, instance: Instance, gate: Gate, stopping: asyncio.Event) -> None:
        self._instance, self._gate = instance, gate
        self._stopping = stopping
        self._proxy = MemoryProxy(instance)

    def routes(self) -> tuple[OpenRoute, ...]:
        """Its routes."""
        talk, either = (Scope.TALK,), (Scope.TALK, Scope.READ)
        return (
            self._route("GET", "/v1/models", self._models, either),
            self._route("GET", "/v1/models/{id:path}", self._model, either),
            self._route("POST", "/v1/embeddings", self._embeddings, (Scope.READ,)),
            self._route("POST", "/v1/chat/completions", from_outside(self._instance, self._chat), talk),
            self._route("POST", "/v1/responses", from_outside(self._instance, self._respond), talk),
            self._route("GET", "/v1/responses/{id}", self._response, talk),
            self._route("DELETE", "/v1/responses/{id}", self._delete, talk),
        )

    def _route(self, method: str, path: str, endpoint: responses.Endpoint, scopes: tuple[Scope, ...]) -> OpenRoute:
        body = takes("model", model=TEXT) if method == "POST" else ANY
        return OpenRoute(method, path, endpoint, "key", scopes, body, render=openai_problem, fails=_ERROR)

    async def close(self) -> None:
        """End what runs, once everything is recorded."""
        await self._proxy.close()

    async def _models(self, request: Request) -> Response:
        """The models that a key may use, in OpenAI's form."""
        return JSONResponse(list_models(self._instance, self._caller(request, Scope.TALK, Scope.READ)))

    async def _model(self, request: Request) -> Response:
        """One of the models that a key may use, in OpenAI's form."""
        who = self._caller(request, Scope.TALK, Scope.READ)
        return JSONResponse(show_model(self._instance, who, request.path_params["id"]))

    async def _embeddings(self, request: Request) -> Response:
        """Vectors of texts, in OpenAI's form."""
        self._caller(request, Scope.READ)
        fields = await fields_in(request, await body_of(request, embeddings.BODY_MAX))
        return await responses.while_there(request, embeddings.embed(self._instance, fields))

    async def _chat(self, request: Request) -> Response:
        """A chat completion of the agent or of a memory proxy, in OpenAI's form."""
        who = self._caller(request, Scope.TALK)
        body = await body_of(request, BODY_MAX)
        fields = await fields_in(request, body)
        who = speaker_of(request, who, fields)
        if _model_of(fields).startswith(PROXY):
            return await self._proxy.answer(self._site(request, who), body, fields)
        return await self._answered(completions.complete, request, who, fields)

    async def _respond(self, request: Request) -> Response:
        """A response of the agent, in OpenAI's form."""
        who = self._caller(request, Scope.TALK)
        fields = await fields_in(request, await body_of(request, BODY_MAX))
        return await self._answered(agent.respond, request, speaker_of(request, who, fields), fields)

    async def _response(self, request: Request) -> Response:
        """A response of the agent as it is now, in OpenAI's form."""
        who = self._caller(request, Scope.TALK)
        return await agent.fetch(self._instance, speaker_of(request, who, {}), request.path_params["id"])

    async def _delete(self, request: Request) -> Response:
        """Delete a response of the agent, in OpenAI's form; the conversation stays as it is."""
        who = self._caller(request, Scope.TALK)
        return await agent.delete(self._instance, speaker_of(request, who, {}), request.path_params["id"])

    async def _answered(
        self, answer: Answer, request: Request, who: Principal, fields: Mapping[str, object]
    ) -> Response:
        if (model := _model_of(fields)) != AGENT:
            if model.startswith(PROXY) and is_listed(self._instance, who, model):
                raise BadParameter(f"{model} is a memory proxy, which answers /v1/chat/completions alone", "model")
            raise no_model(model)
        return await answer(self._site(request, who), fields)

    def _site(self, request: Request, who: Principal) -> ChatSite:
        watch = KeyWatch(self._gate, self._instance.keys, request, (Scope.TALK,))
        return ChatSite(self._instance, request, who, self._stopping, watch)

    def _caller(self, request: Request, *scopes: Scope) -> Principal:
        """Who calls. Raises NotFound while there is no key, Unauthorised, NotAllowed and Refused."""
        if not self._instance.keys.by_name:
            raise responses.NotFound(
                "the OpenAI-compatible endpoint is off: no key is set", hint="keepsaid config show keys"
            )
        return self._gate.caller(request, scopes)


_OF_PROTOCOL = re.compile(
    r"/v1/(?:chat/completions|completions|responses|models|embeddings|audio|images|files|moderations|assistants"
    r"|threads|realtime)(?:/.*)?"
)
"""Paths of the protocol, of which keepsaid has some."""


def unrouted(request: Request, error: Exception) -> Response:
    """The response where no route takes a request: in OpenAI's form at addresses of the protocol."""
    if _OF_PROTOCOL.fullmatch(request.url.path):
        return responses.unrouted(request, error, openai_problem)
    return responses.unrouted(request, error)


def _model_of(fields: Mapping[str, object]) -> str:
    model = fields.get("model")
    if not isinstance(model, str) or not model:
        raise BadParameter("model is missing: GET /v1/models lists the models", "model")
    return model
