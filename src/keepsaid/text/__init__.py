"""Rules of language and text without a model: words, dates, tokens, normal forms."""
