"""What the runtime tells of, a file for each part of it."""
