"""The composition root: joins ports, adapters and stages. The only package that knows adapters.

Each module is one way in, so that a command imports no more than it uses.
"""
