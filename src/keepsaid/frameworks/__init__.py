"""Adapters of keepsaid's memory to agent frameworks, one module each, loaded when imported (short: it only groups)."""
