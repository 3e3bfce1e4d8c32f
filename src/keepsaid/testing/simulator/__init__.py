"""The simulator: the whole runtime on virtual time, with chance from a seed and a judge at the end.

`python -m keepsaid.testing.simulator --seed N` plays one seed and prints what happened.
"""
