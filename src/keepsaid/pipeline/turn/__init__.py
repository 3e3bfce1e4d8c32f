"""The turn: steps until there is an answer."""
