"""Settings that variables of the environment give: KEEPSAID_ and the path of a key, joined with `__`.

The source of pydantic-settings reads them. It takes longer to load than all settings do, so a command loads it only
where such a variable is set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from keepsaid.config.section import with_current_keys
from keepsaid.config.settings import ENV_PREFIX, Config

_OTHER = frozenset({f"{ENV_PREFIX}HOME", f"{ENV_PREFIX}TOKEN"})
"""Variables of ours that are not settings."""


def from_environment() -> dict[str, Any]:
    """The settings that variables give. Raises ConfigError for a section or list that is not JSON."""
    names = {name.upper() for name in os.environ}
    if not any(name.startswith(ENV_PREFIX) for name in names - _OTHER):
        return {}
    from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict, SettingsError  # noqa: PLC0415 - 70 ms

    class _Variables(Config, BaseSettings):
        model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, env_nested_delimiter="__", defer_build=True)

    source = EnvSettingsSource(_Variables)
    try:
        return with_current_keys(source())
    except SettingsError as error:
        from keepsaid.config.faults import bad_variable  # noqa: PLC0415 - needed where something is wrong

        raise bad_variable(error) from None


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two trees of settings as one; where both have a key that holds no keys, `above` wins."""
    made = dict(below)
    for name, value in above.items():
        beneath = made.get(name)
        if isinstance(beneath, Mapping) and isinstance(value, Mapping):
            made[name] = merged(beneath, value)
        else:
            made[name] = value
    return made
