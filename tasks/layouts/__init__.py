"""Layouts of official files. A layout is a small module that yields rows of named values, see rows.py."""
