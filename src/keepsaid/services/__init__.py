"""Use cases that change or search something, each once, typed; plain lists come from the views of `ports`."""
