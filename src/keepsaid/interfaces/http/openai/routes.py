"""Routes of the OpenAI protocol: chat completions and responses of the agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.domain.principal import Scope
from keepsaid.interfaces.http import responses
from keepsaid.interfaces.http.bodies import body_of, fields_in
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.openai import completions
from keepsaid.interfaces.http.openai import responses as agent_responses
from keepsaid.interfaces.http.openai.chat_requests import Fields
from keepsaid.interfaces.http.openai.chats import ChatSite

BYTES_MAX = 20_000_000
"""Bytes of a body (A10)."""

Answer = Callable[[ChatSite, Fields], Awaitable[Response]]


def routes(instance: Instance, gate: Gate, stopping: asyncio.Event) -> list[Route]:
    """The routes of an instance, for keys that may talk."""

    def site_of(request: Request) -> ChatSite:
        return ChatSite(instance, request, gate.caller(request, (Scope.TALK,)), stopping)

    def posted(answer: Answer) -> responses.Endpoint:
        async def endpoint(request: Request) -> Response:
            site = site_of(request)
            return await answer(site, await fields_in(request, await body_of(request, BYTES_MAX)))

        return responses.guarded(endpoint)

    async def fetch(request: Request) -> Response:
        return await agent_responses.fetch(instance, site_of(request).who, request.path_params["id"])

    return [
        Route("/v1/chat/completions", posted(completions.complete), methods=["POST"]),
        Route("/v1/responses", posted(agent_responses.respond), methods=["POST"]),
        Route("/v1/responses/{id}", responses.guarded(fetch), methods=["GET"]),
    ]
