"""Files, folders and processes. This package is independent of text."""
