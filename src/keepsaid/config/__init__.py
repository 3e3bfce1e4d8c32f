"""Config: one frozen tree from defaults, a YAML file and the environment; the environment always wins."""

from keepsaid.config.file import load
from keepsaid.config.home import Home
from keepsaid.config.settings import Config

__all__ = ["Config", "Home", "load"]
