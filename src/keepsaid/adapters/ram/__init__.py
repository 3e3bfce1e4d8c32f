"""The operational store in memory: the twin that tests, simulations and examples run on."""
