"""Benchmarks: figures beside the disk's fsync rate, ratios against named peers in the same run."""
