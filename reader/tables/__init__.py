"""Compiled lookup tables: hashing, strings to IDs, and prefix trees."""
