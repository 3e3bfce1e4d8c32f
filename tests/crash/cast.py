"""The cast of the tests: the program that people run, and what it imports on its way."""

from __future__ import annotations

from keepsaid.interfaces.cli.prove import PRELOAD, PROGRAM
from keepsaid.testing.crash.stage import Cast

CAST = Cast(PROGRAM, PRELOAD)
"""Killed in every test of this folder."""
