"""Tagging: words or characters -> a tag for each of them."""
