"""Commands that this distribution adds to `keepsaid`."""
