"""Metrics that give the figures of the official scorers. catalog.py lists them by name."""
