"""The testkit: contract suites of the stores, crash plays, power cuts, a simulator, and benchmarks."""
