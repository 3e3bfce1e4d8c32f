"""The path of a message: receive, batch, route, claim, context, turn, deliver. `flow` tells it."""
