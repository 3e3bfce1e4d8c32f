"""Intake: what stands at the door of the buffer."""
