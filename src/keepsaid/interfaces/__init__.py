"""What people touch: command line, HTTP, library."""
