"""The OpenAI-compatible endpoint: chat completions and responses."""
