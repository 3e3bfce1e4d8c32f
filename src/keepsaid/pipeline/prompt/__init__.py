"""The prompt: what the model reads in a turn."""
