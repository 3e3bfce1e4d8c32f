"""The library: a durable inbox and a memory for an agent of your own."""
