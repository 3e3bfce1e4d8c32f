"""The OpenAI-compatible endpoint: models, embeddings, chat completions and responses."""
