"""Built-in extensions: parts of the core that come in through the same door, each with its manifest beside this."""
