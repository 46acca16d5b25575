"""Recorded results of a short, fixed training of every rung: refactoring must not change them."""
