"""Media: how the raw objects of other people's bots are read, one module a medium."""
