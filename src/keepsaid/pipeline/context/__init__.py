"""The context: what the model is shown."""
