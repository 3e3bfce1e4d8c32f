"""Reads the secrets that the config file names as `${file:PATH}`, so that a key need not stand in the config itself."""

from __future__ import annotations

from pathlib import Path

from keepsaid.errors import ConfigError

PREFIX = "file:"
"""How a reference to a file begins, inside `${` and `}`."""

_BYTES_MAX = 65_536


def reference(path: str) -> str:
    """Return the text that the config file holds in place of the content of `path`."""
    return "${" + PREFIX + path + "}"


def read_secret(path: str, folder: Path) -> str:
    """Return the content of a file without the space around it; a relative path starts at `folder`.

    Raises ConfigError, which names the file and never quotes it.
    """
    file = folder / Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            content = opened.read(_BYTES_MAX + 1)
        text = content.decode("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror})", hint=_hint(file)) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8", hint=_hint(file)) from None
    if not text:
        raise ConfigError(f"{file} is empty", hint=_hint(file))
    if len(content) > _BYTES_MAX:
        raise ConfigError(f"{file} holds more than {_BYTES_MAX:,} bytes, which is too long for a secret")
    return text


def _hint(file: Path) -> str:
    return f"write the secret to {file}, or remove the reference to it from config.yaml"
