"""Providers of media, as bad as a test wants them: real HTTP on loopback, and what they accepted."""
