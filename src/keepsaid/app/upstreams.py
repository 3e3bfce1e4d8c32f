"""Memory proxies of a config: their providers, and the memory that they add (short: it joins what others do)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from keepsaid.adapters.models.upstream import UpstreamEndpoint
from keepsaid.app.instance import Instance
from keepsaid.config import Config
from keepsaid.ports.upstream import Upstream
from keepsaid.services.proxy import ProxyMemory


def upstreams_of(config: Config) -> Mapping[str, Upstream]:
    """The provider of each proxy, by its name; each connects when it is first called."""
    made: dict[str, Upstream] = {}
    for name, one in config.openai.proxies.items():
        key = one.key.get_secret_value() if one.key else None
        made[name] = UpstreamEndpoint(one.base_url, key, timeout_s=one.timeout_s, connections=one.concurrent_max)
    return made


def proxy_memory_of(instance: Instance) -> ProxyMemory:
    """What recalls for and records the calls of an instance."""
    remember = partial(_remember, instance)
    contexts, limit_ms = instance.services.assistant.contexts, instance.config.memory.deadline_ms
    return ProxyMemory(contexts, instance.record, remember, instance.memories, limit_ms)


async def _remember(instance: Instance, conversation: str) -> None:
    async with asyncio.timeout(2.0):
        await instance.recorder.catch_up(conversation=conversation)
