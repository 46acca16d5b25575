"""Compiled look-up tables: hashing, strings to numbers, prefix trees."""
