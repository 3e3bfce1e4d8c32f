"""The models of the endpoint, each key's own list: the agent, and the memory proxies that the key may use."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.app.instance import Instance
from keepsaid.config.openai import ProxyConfig
from keepsaid.domain.principal import Principal, Scope
from keepsaid.errors import NotAllowed
from keepsaid.interfaces.http.openai.problems import NoSuchModel
from keepsaid.interfaces.shapes import Shape
from keepsaid.text.normal import cut

AGENT = "keepsaid"
"""The model that is keepsaid's own agent."""

PROXY = "memory/"
"""What the names of memory proxies begin with."""

_QUOTED_MAX = 80


def list_models(instance: Instance, who: Principal) -> Shape:
    """The models that a caller may use, the agent first."""
    return {"object": "list", "data": [_shape(name) for name in _names(instance, who)]}


def is_listed(instance: Instance, who: Principal, name: str) -> bool:
    """Whether a caller may use a model."""
    return name in _names(instance, who)


def show_model(instance: Instance, who: Principal, name: str) -> Shape:
    """One of them. Raises NoSuchModel."""
    if not is_listed(instance, who, name):
        raise no_model(name)
    return _shape(name)


def proxy_named(instance: Instance, who: Principal, model: str) -> ProxyConfig:
    """The settings of the proxy that a model names. Raises NoSuchModel, and NotAllowed for a scope that is missing."""
    settings = instance.config.openai.proxies.get(model.removeprefix(PROXY))
    if settings is None or not _may_name(who, settings):
        raise no_model(model)
    if lacking := _lacking(who, settings):
        raise NotAllowed(f"the key {who.name} does not open {model}: it needs the scope {' and '.join(lacking)}")
    return settings


def no_model(name: str) -> NoSuchModel:
    """The error for a model that does not exist for this caller."""
    return NoSuchModel(f"the model {cut(name, _QUOTED_MAX)!r} does not exist, or you do not have access to it")


def _names(instance: Instance, who: Principal) -> Sequence[str]:
    proxies = instance.config.openai.proxies.items()
    usable = sorted(name for name, one in proxies if _may_name(who, one) and not _lacking(who, one))
    return [*([AGENT] if who.may(Scope.TALK) else []), *(f"{PROXY}{name}" for name in usable)]


def _may_name(who: Principal, settings: ProxyConfig) -> bool:
    return who.everything or not settings.keys or who.name in settings.keys


def _lacking(who: Principal, settings: ProxyConfig) -> Sequence[Scope]:
    wanted = [Scope.TALK, *([Scope.READ] if settings.reads else []), *([Scope.WRITE] if settings.writes else [])]
    return [scope for scope in wanted if not who.may(scope)]


def _shape(name: str) -> Shape:
    return {"id": name, "object": "model", "created": 0, "owned_by": "keepsaid"}
