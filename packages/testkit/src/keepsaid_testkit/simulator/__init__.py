"""The simulator: the whole runtime on virtual time, with chance from a seed and a judge at the end.

`python -m keepsaid_testkit.simulator --seed N` plays one seed and prints what happened.
"""
