"""Raw text: which files, what is in them, their digest, and mapping work over their segments."""
