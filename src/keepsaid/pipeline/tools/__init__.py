"""Tools of the agent that change what waits, comes or is asked; each call takes effect with the commit of its turn."""
