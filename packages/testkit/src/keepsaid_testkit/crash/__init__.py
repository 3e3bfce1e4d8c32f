"""The crash harness: the runtime is killed where and when it hurts, and a judge says whether it kept its word."""
