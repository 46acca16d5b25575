"""Compiled lookup tables: of 64-bit keys, and of strings."""
