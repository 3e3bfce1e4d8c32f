"""The engine room: loops and caretakers that move messages along."""
