"""Regression: one or two texts -> a score."""
