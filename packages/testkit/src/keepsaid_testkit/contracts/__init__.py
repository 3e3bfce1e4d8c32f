"""Contracts: what every adapter of a port must do, as test classes to subclass. Give them the fixture they name."""
