"""Files, folders and processes. Nothing here knows of text."""
