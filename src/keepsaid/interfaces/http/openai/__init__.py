"""The OpenAI-compatible endpoint: models, embeddings, and chat completions that memory proxies forward."""
