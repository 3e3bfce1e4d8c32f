"""Tools that others serve."""
