"""Span extraction: a question and a context -> the part of the context that answers the question, or none."""
