"""The router: batches and verdicts."""
