"""Delivery: replies on their way out."""
