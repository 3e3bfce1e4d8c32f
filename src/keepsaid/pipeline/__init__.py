"""The path of a message: receive, batch, route, claim, context, turn, deliver. `runner.py` lists the steps."""
