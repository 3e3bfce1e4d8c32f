"""Models: providers behind one port, and the responder for when there is none."""
